# rye:signed:20261118T125305Z:42dd7de71359873b586a34f89f93dfa98da7b2c52f350bb9b4d31c34ab0890f1:qsFZ9RAQc4slqllUKdyb9qpsOIxuQ-N5TAivge3F7pzLnvyDW2k2qAvAzhzuAXDixSijngJfl6yF4o9hfP3BCA==:0cdadc7a57fefd2c
# /// rye
# version = "1.0.0"
# tool_type = "library"
# executor_id = "rye/core/runtimes/bash_runtime"
# category = "runtimes"
# description = "Passes parameters to a shell tool for bash_runtime; not a tool itself"
# ///
#
# Usage: bash rye_run_tool.sh TOOL_PATH PROJECT_PATH < params.json
#
# Exports each top-level parameter as RYE_PARAM_<NAME>. The name is in upper case, with an underscore
# for each character that a variable name cannot contain. Text is unchanged, numbers and booleans are
# spelled as in JSON, objects and lists are JSON; null leaves the variable unset. A value of more
# than 64 KiB of JSON is left out, since Linux limits a variable to 128 KiB. The whole JSON object is
# on the tool's stdin; with RYE_STDIN, the size of the parameters, only what follows them is.
#
# The tool is sourced into this shell: there is only one process, and $0 is the tool. Needs bash 4.4.

__rye_fail() {
  printf '%s\n' "$1" >&2
  exit 1
}

# Sets __rye_text to the text of the JSON string body $1.
__rye_unescape() {
  __rye_text=$1
  [[ $1 == *\\* ]] || return 0
  # JSON strings contain no raw control characters, so \001 can replace an escaped backslash. Each
  # remaining backslash then starts an escape.
  local rest=${1//\\\\/$'\001'} pair='\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)' wide
  [[ $rest != *\\u0000* ]] ||
    __rye_fail "a parameter contains a NUL character, which a variable cannot hold; remove it"
  while [[ $rest =~ $pair ]]; do
    printf -v wide '\\U%08x' \
      $(((0x${BASH_REMATCH[1]} - 0xD800) * 0x400 + 0x${BASH_REMATCH[2]} - 0xDC00 + 0x10000))
    rest=${rest//"${BASH_REMATCH[0]}"/$wide}
  done
  rest=${rest//\\\"/\"}
  rest=${rest//\\\//\/}
  rest=${rest//$'\001'/\\\\}
  local LC_ALL=C.UTF-8
  printf -v __rye_text '%b' "$rest"
}

# Exports the parameter $1 with the value $2.
__rye_export() {
  local name
  __rye_unescape "$1"
  name=RYE_PARAM_${__rye_text//[!A-Za-z0-9_]/_}
  name=${name^^}
  [[ -z ${__rye_seen[$name]+x} ]] ||
    __rye_fail "two parameters have the same variable $name; rename one of them"
  __rye_seen[$name]=1
  export "$name=$2"
}

# Exports every member of the JSON object. Splitting at the quotes separates strings from the text
# between them; only that text can open or close an object or a list.
__rye_parameters() {
  # Bytes, not characters: the limits are in bytes, and long texts are processed faster.
  local LC_ALL=C
  local -A __rye_seen=()
  local -a parts
  local -i depth=0 i=0 count limit=65536
  local between key= nested= long= opened closed quoted tail
  mapfile -d '"' -t parts <<<"$__rye_json"
  count=${#parts[@]}
  while ((i < count)); do
    if ((${#parts[i]} < 2048)); then
      between=${parts[i]//[$' \t\r\n']/}
      opened=${between//[!\{\[]/}
      closed=${between//[!\}\]]/}
    else # replacing in the shell takes quadratic time; such long lists of numbers are rare
      between=$(tr -d ' \t\r\n' <<<"${parts[i]}")
      opened=$(tr -cd '{[' <<<"$between")
      closed=$(tr -cd ']}' <<<"$between")
    fi
    depth+=$((${#opened} - ${#closed}))
    if [[ -n $nested ]]; then
      [[ $long ]] || nested+=$between
      if ((depth <= 1)); then
        [[ $long ]] || __rye_member "$key" "$nested"
        nested= long=
      fi
    elif [[ $between == :[\{\[]* ]] && ((depth > 1)); then
      nested=${between#:}
    elif [[ $between == :?* && $between != :null* ]]; then
      __rye_member "$key" "${between#:}"
    fi
    ((++i < count)) || break
    # A quote after an odd number of backslashes is part of the string.
    quoted=${parts[i]}
    tail=${parts[i]##*[!\\]}
    while ((${#tail} % 2 && i + 1 < count)); do
      ((${#quoted} > limit)) || quoted+=\"${parts[i + 1]}
      tail=${parts[++i]##*[!\\]}
    done
    if [[ -n $nested ]]; then
      [[ $long ]] || nested+=\"$quoted\"
      ((${#nested} <= limit)) || nested=+ long=1
    elif [[ $between != : ]]; then
      key=$quoted
    elif ((${#quoted} <= limit)); then
      __rye_unescape "$quoted"
      __rye_export "$key" "$__rye_text"
    fi
    i+=1
  done
}

# Exports a member whose value $2 still ends with the following comma or brace.
__rye_member() {
  ((${#2} > limit)) || __rye_export "$1" "${2%?}"
}

__rye_tool=$1
export RYE_PROJECT_PATH=$2
shift 2
if [[ -n ${RYE_STDIN:-} ]]; then # the number of bytes; the rest is for the tool
  IFS= LC_ALL=C read -r -N "$RYE_STDIN" __rye_json
else
  IFS= read -r -d '' __rye_json
fi
[[ $__rye_json == \{* ]] || __rye_fail "the parameters on stdin are not a JSON object; send one"
__rye_parameters
[[ -n ${RYE_STDIN:-} ]] || exec <<<"$__rye_json"
BASH_ARGV0=$__rye_tool
unset -f __rye_fail __rye_utf8 __rye_unescape __rye_export __rye_member __rye_parameters
unset -v __rye_json __rye_text RYE_STDIN
. "$__rye_tool"
