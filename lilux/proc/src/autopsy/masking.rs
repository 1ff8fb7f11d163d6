//! Keeps secrets out of an autopsy.
//!
//! A command line may contain a secret, so an argument is shown only if its form is one of a few that
//! do not carry values; see [`command`]. Values of the environment are masked in all texts, as in the
//! dry run of a caller: `${NAME}`.

use crate::text::OsText;

/// Shorter values, such as `C` or `1`, are part of many words.
const MIN_VALUE: usize = 4;
const MAX_SHOWN_ARGS: usize = 6;
const MAX_NAME: usize = 40;

/// Programs whose first argument is a subcommand.
const WITH_SUBCOMMANDS: [&str; 26] = [
    "apt",
    "apt-get",
    "aws",
    "brew",
    "bun",
    "cargo",
    "conda",
    "deno",
    "docker",
    "gcloud",
    "gh",
    "git",
    "go",
    "helm",
    "kubectl",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "rye",
    "terraform",
    "uv",
    "yarn",
];
const SOURCE_EXTENSIONS: [&str; 14] =
    ["bash", "cjs", "js", "jar", "lua", "mjs", "mts", "php", "pl", "py", "R", "rb", "sh", "ts"];

/// The values of an environment that must not be shown.
#[derive(Debug, Default)]
pub struct Mask(Vec<(String, String)>);

impl Mask {
    /// For these variables.
    pub fn new(variables: &[(OsText, OsText)]) -> Self {
        let mut values: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| (value.display(), format!("${{{}}}", name.display())))
            .filter(|(value, _)| value.len() >= MIN_VALUE)
            .collect();
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self(values)
    }

    /// The text without control characters, and with the name of a variable instead of its value.
    pub fn apply(&self, text: &str) -> String {
        let mut text: String =
            text.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect();
        for (value, name) in &self.0 {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), name);
            }
        }
        text
    }
}

/// The program and the arguments that may be shown; `…` for the others.
///
/// `name` is the kernel's name of the process, which is not longer than 15 bytes. The program's own
/// account of its name (`argv[0]`) completes it, but cannot replace it.
pub fn command(name: &str, argv: &[String]) -> String {
    let own = argv.first().map_or("", |first| base_name(first));
    let program = if own.starts_with(name) && own.len() <= MAX_NAME { own } else { name };
    let mut shown = vec![program.to_owned()];
    for (index, argument) in argv.iter().enumerate().skip(1) {
        let argument = shown_argument(program, index, argument).unwrap_or_else(|| "…".to_owned());
        // One sign for all arguments in a row that are not shown.
        if argument != "…" || shown.last().is_none_or(|last| last != "…") {
            if shown.len() > MAX_SHOWN_ARGS {
                break;
            }
            shown.push(argument);
        }
    }
    shown.join(" ")
}

fn shown_argument(program: &str, index: usize, argument: &str) -> Option<String> {
    let is_word = |text: &str| {
        (1..=MAX_NAME).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    };
    if let Some(option) = argument.strip_prefix("--") {
        return match option.split_once('=') {
            Some((name, _)) if is_word(name) => Some(format!("--{name}=…")),
            None if is_word(option) => Some(argument.to_owned()),
            _ => None,
        };
    }
    if let Some(option) = argument.strip_prefix('-') {
        let mut letters = option.chars();
        let letter = letters.next().filter(char::is_ascii_alphabetic)?;
        // What follows the letter may be the value: `-pPASSWORD`.
        return Some(format!("-{letter}{}", if letters.next().is_some() { "…" } else { "" }));
    }
    if index == 1 && WITH_SUBCOMMANDS.contains(&program) && is_word(argument) {
        return Some(argument.to_owned());
    }
    if index == 1 && program == "sleep" && argument.chars().all(|c| c.is_ascii_digit() || c == '.')
    {
        return Some(argument.to_owned());
    }
    let name = base_name(argument);
    let (stem, extension) = name.rsplit_once('.')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_source = SOURCE_EXTENSIONS.contains(&extension)
        && !stem.is_empty()
        && name.len() <= MAX_NAME
        && name.chars().all(plain);
    is_source.then(|| name.to_owned())
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[&str]) -> String {
        let argv: Vec<String> = line.iter().map(|&text| text.to_owned()).collect();
        let name: String = base_name(line[0]).chars().take(15).collect();
        command(&name, &argv)
    }

    #[test]
    fn the_program_its_options_and_its_subcommand_are_shown() {
        assert_eq!(shown(&["/usr/bin/git", "clone", "https://me:pw@host/x"]), "git clone …");
        assert_eq!(shown(&["sleep", "300"]), "sleep 300");
        assert_eq!(shown(&["bash", "-c", "echo $TOKEN"]), "bash -c …");
        assert_eq!(
            shown(&["python3", "-I", "-X", "utf8", "/a/tool.py", "x"]),
            "python3 -I -X … tool.py …"
        );
    }

    #[test]
    fn values_of_arguments_are_not_shown() {
        for line in [
            &["mysql", "-phunter2"] as &[&str],
            &["curl", "--user=me:hunter2", "hunter2"],
            &["login", "hunter2", "--", "hunter2", "--hunter2=hunter2"],
            &["git", "hunter2", "hunter2"],
            &["sleep", "hunter2"],
        ] {
            assert!(!shown(line).contains("hunter2"), "{}", shown(line));
        }
        assert_eq!(shown(&["curl", "--user=me:hunter2", "a", "b"]), "curl --user=… …");
    }

    #[test]
    fn a_program_cannot_choose_its_name_by_argv() {
        assert_eq!(command("sleep", &["hunter2".to_owned(), "300".to_owned()]), "sleep 300");
    }

    #[test]
    fn values_of_the_environment_are_replaced_by_their_names() {
        let variables = [
            (OsText::from("SHORT"), OsText::from("abc")),
            (OsText::from("A"), OsText::from("secret")),
            (OsText::from("B"), OsText::from("secret-longer")),
        ];
        let mask = Mask::new(&variables);
        assert_eq!(mask.apply("abc secret secret-longer \u{1b}"), "abc ${A} ${B} ?");
    }
}
