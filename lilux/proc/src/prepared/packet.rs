//! What a prepared process is told about a call.

use crate::error::{Error, PreparedError};
use crate::request::Program;
use crate::text::OsText;

/// The largest packet. A socket takes a little more at once.
const MAX_PACKET: usize = 128 * 1024;

/// Strings, each with a NUL at its end: what the descriptors of the packet are, the number of
/// arguments, the command and the arguments, the working directory (empty for that of the prepared
/// process), and `NAME=VALUE` for each variable of the environment.
pub fn encode(
    descriptors: &[&str],
    program: &Program,
    env: &[(OsText, OsText)],
) -> Result<Vec<u8>, Error> {
    let count = program.args.len() + 1;
    let mut packet = format!("{}\0{count}\0", descriptors.join(" ")).into_bytes();
    for text in std::iter::once(&program.command).chain(&program.args).chain(&program.cwd) {
        packet.extend_from_slice(text.as_bytes());
        packet.push(0);
    }
    if program.cwd.is_none() {
        packet.push(0);
    }
    for (name, value) in env {
        packet.extend_from_slice(name.as_bytes());
        packet.push(b'=');
        packet.extend_from_slice(value.as_bytes());
        packet.push(0);
    }
    if packet.len() > MAX_PACKET { Err(PreparedError::TooLarge.into()) } else { Ok(packet) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_arguments_and_a_missing_folder_keep_their_place() {
        let program = Program {
            command: "run".into(),
            args: vec!["".into(), "b".into()],
            ..Program::default()
        };
        let env = [("A".into(), "1".into())];
        assert_eq!(
            encode(&["stdin", "call"], &program, &env).unwrap(),
            b"stdin call\x003\0run\0\0b\0\0A=1\0"
        );
        let elsewhere = Program { cwd: Some("/tmp".into()), ..program };
        assert_eq!(encode(&[], &elsewhere, &[]).unwrap(), b"\x003\0run\0\0b\0/tmp\0");
    }

    #[test]
    fn a_packet_that_a_socket_may_refuse_is_not_sent() {
        let program =
            Program { args: vec!["a".repeat(MAX_PACKET).as_str().into()], ..Program::default() };
        let message = encode(&[], &program, &[]).unwrap_err().to_string();
        assert!(message.contains("128 KiB"), "{message}");
    }
}
