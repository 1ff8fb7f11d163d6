//! Seccomp filters as binary search trees.
//!
//! When a filter is installed, the kernel walks it once for each system call that exists, so the
//! length of the path to a decision is what an installation costs. A list of comparisons is three
//! times as expensive as this tree.

use std::ops::Range;

use libc::{c_int, sock_filter};

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND: u16 = 0x54; // BPF_ALU | BPF_AND | BPF_K
const IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const IF_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const IF_ANY_BIT: u16 = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K

const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
/// Where the decision about calls of another architecture is.
const FOREIGN: usize = 2;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// About the number of system calls that exist.
const LAST_WALKED: u32 = 470;

/// The operation, the two distances of a jump, and the operand.
type Instruction = (u16, u8, u8, u32);

/// A part of a filter that ends in a decision on every path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code(Vec<Instruction>);

impl Code {
    /// The call is made.
    pub fn allow() -> Self {
        Self(vec![(RETURN, 0, 0, ALLOW)])
    }

    /// The call waits until the listener of the filter answers.
    pub fn notify() -> Self {
        Self(vec![(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF)])
    }

    /// The call fails with this error.
    pub fn fail(errno: c_int) -> Self {
        Self(vec![(RETURN, 0, 0, ERRNO | errno.unsigned_abs())])
    }

    /// `then` if the low half of an argument, limited to `mask`, equals `value`.
    pub fn if_argument(index: u32, mask: u32, value: u32, then: Self, otherwise: Self) -> Self {
        let mut code = vec![load_low(index)];
        if mask != u32::MAX {
            code.push((AND, 0, 0, mask));
        }
        code.extend(branch(IF_EQUAL, value, then, otherwise));
        Self(code)
    }

    /// `then` if the low half of an argument has any of these bits.
    pub fn if_bits(index: u32, bits: u32, then: Self, otherwise: Self) -> Self {
        let mut code = vec![load_low(index)];
        code.extend(branch(IF_ANY_BIT, bits, then, otherwise));
        Self(code)
    }

    /// `then` if a whole argument, such as a pointer, is zero.
    pub fn if_zero(index: u32, then: &Self, otherwise: &Self) -> Self {
        let (low, mut high) = (load_low(index), load_low(index));
        high.3 += 4;
        let mut second = vec![high];
        second.extend(branch(IF_EQUAL, 0, then.clone(), otherwise.clone()));
        let mut code = vec![low];
        code.extend(branch(IF_EQUAL, 0, Self(second), otherwise.clone()));
        Self(code)
    }
}

fn load_low(index: u32) -> Instruction {
    (LOAD, 0, 0, ARGUMENTS + 8 * index)
}

/// `then` if the accumulator satisfies the condition. Decisions about arguments are short, so a
/// conditional jump, which reaches 255 instructions, is always long enough.
fn branch(condition: u16, value: u32, then: Code, otherwise: Code) -> Vec<Instruction> {
    let distance = u8::try_from(otherwise.0.len()).unwrap_or(u8::MAX);
    let mut code = vec![(condition, distance, 0, value)];
    code.extend(otherwise.0);
    code.extend(then.0);
    code
}

/// Where a branch of the tree leads.
#[derive(Clone, Copy)]
enum Target {
    Node(usize),
    Decision(usize),
}

/// A comparison with the number of the call.
struct Node {
    number: u32,
    at_least: Target,
    below: Target,
}

/// Compiles a filter. Calls below the first number are allowed, and each entry applies from its
/// number up to the next one. `entries` is sorted. Calls of another architecture, whose numbers mean
/// something else, kill the process. `None` if the filter would be too long for its jumps.
///
/// The tree comes first, then each different decision once: a shorter filter is installed faster.
pub fn compile(architecture: u32, entries: &[(u32, Code)]) -> Option<Vec<sock_filter>> {
    let mut decisions = vec![Code::allow()];
    let mut numbered = Vec::with_capacity(entries.len());
    for (number, code) in entries {
        let known = decisions.iter().position(|decision| decision == code);
        numbered.push((*number, known.unwrap_or(decisions.len())));
        if known.is_none() {
            decisions.push(code.clone());
        }
    }
    let mut nodes = Vec::new();
    search(&mut nodes, 0, &numbered, 0..LAST_WALKED);
    let mut code = vec![
        (LOAD, 0, 0, ARCHITECTURE),
        (IF_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, NUMBER),
    ];
    for (at, node) in nodes.iter().enumerate() {
        let distance = |target| {
            let place = match target {
                Target::Node(index) => index,
                Target::Decision(index) => {
                    nodes.len() + decisions[..index].iter().map(|code| code.0.len()).sum::<usize>()
                }
            };
            u8::try_from(place - at - 1).ok()
        };
        code.push((IF_AT_LEAST, distance(node.at_least)?, distance(node.below)?, node.number));
    }
    code.extend(decisions.into_iter().flat_map(|code| code.0));
    Some(code.into_iter().map(|(code, jt, jf, k)| sock_filter { code, jt, jf, k }).collect())
}

/// Changes a compiled filter so that calls of another architecture are made.
pub fn allow_foreign(filter: &mut [sock_filter]) {
    filter[FOREIGN].k = ALLOW;
}

/// Appends the tree for the numbers in `range`, each node before its children, because a filter only
/// jumps forward. `below` is the decision for numbers below the first entry.
///
/// Each node halves the numbers, not the entries: the kernel walks once for each number.
fn search(
    nodes: &mut Vec<Node>,
    below: usize,
    entries: &[(u32, usize)],
    range: Range<u32>,
) -> Target {
    let middle = range.start.midpoint(range.end);
    let nearest = (0..entries.len()).min_by_key(|&at| entries[at].0.abs_diff(middle));
    let Some(at) = nearest else { return Target::Decision(below) };
    let (number, decision) = entries[at];
    let this = nodes.len();
    let undecided = Target::Decision(below);
    nodes.push(Node { number, at_least: undecided, below: undecided });
    let end = range.end.max(number);
    nodes[this].below = search(nodes, below, &entries[..at], range.start..number);
    nodes[this].at_least = search(nodes, decision, &entries[at + 1..], number..end);
    Target::Node(this)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Runs a filter like the kernel does.
    pub fn decide(filter: &[sock_filter], arch: u32, number: u32, args: [u64; 6]) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let one = filter[at];
            at += 1;
            let jump = |taken| usize::from(if taken { one.jt } else { one.jf });
            match one.code {
                LOAD => {
                    accumulator = match one.k {
                        NUMBER => number,
                        ARCHITECTURE => arch,
                        offset => {
                            let arg = args[((offset - ARGUMENTS) / 8) as usize];
                            let half = if offset % 8 == 0 { arg } else { arg >> 32 };
                            u32::try_from(half & 0xffff_ffff).unwrap()
                        }
                    }
                }
                AND => accumulator &= one.k,
                IF_EQUAL => at += jump(accumulator == one.k),
                IF_AT_LEAST => at += jump(accumulator >= one.k),
                IF_ANY_BIT => at += jump(accumulator & one.k != 0),
                RETURN => return one.k,
                other => panic!("unknown instruction {other:#x}"),
            }
        }
    }

    /// The decision that a call is made.
    pub const ALLOWED: u32 = ALLOW;
    /// The decision that ends the process.
    pub const KILLED: u32 = KILL_PROCESS;

    /// The decision that a call fails with this error.
    pub fn failed(errno: c_int) -> u32 {
        ERRNO | errno.unsigned_abs()
    }

    #[test]
    fn every_number_gets_the_decision_of_its_entry() {
        let entries: Vec<_> =
            (0..90).map(|n: u16| (3 * u32::from(n) + 5, Code::fail(1 + c_int::from(n)))).collect();
        let filter = compile(7, &entries).unwrap();
        for number in 0..400_u16 {
            let expected = match (i32::from(number) - 5).div_euclid(3).min(89) {
                negative if negative < 0 => ALLOWED,
                entry => failed(entry + 1),
            };
            assert_eq!(decide(&filter, 7, number.into(), [0; 6]), expected, "{number}");
        }
        assert_eq!(decide(&filter, 8, 0, [0; 6]), KILLED);
        let many: Vec<_> = (0..400).map(|n| (n, entries[(n % 9) as usize].1.clone())).collect();
        assert!(compile(7, &many).is_none());
    }

    #[test]
    fn arguments_are_compared() {
        let (yes, no) = (Code::allow(), Code::fail(1));
        let at = |code: Code, value: u64| {
            decide(&compile(0, &[(0, code)]).unwrap(), 0, 0, [0, value, 0, 0, 0, 0]) == ALLOWED
        };
        let equal = Code::if_argument(1, 0xf, 2, yes.clone(), no.clone());
        assert!(at(equal.clone(), 0x12) && !at(equal, 0x13));
        let bits = Code::if_bits(1, 6, yes.clone(), no.clone());
        assert!(at(bits.clone(), 4) && !at(bits, 1));
        let zero = Code::if_zero(1, &yes, &no);
        assert!(at(zero.clone(), 0) && !at(zero.clone(), 1) && !at(zero, 1 << 40));
    }
}
