# rye:signed:20261116T195035Z:48f73f5ef5a0e954f2a0937d20566d89ce2f3e45356445ea9daede4d2b9cf043:z7BJXBwnpZA5bVzWivSpShgkNWhdsA-2YkkF5Ty99tCX0VpKheBR39OWn-zlv49ZlN7TtAeEMRYF-0ZLXrXhDA==:cd7c763470a45766
# /// rye
# version = "1.0.0"
# tool_type = "library"
# executor_id = "rye/core/runtimes/bash_runtime"
# category = "runtimes"
# description = "Hands parameters to a shell tool for bash_runtime; not to be run by itself"
# ///
#
# Usage: bash rye_run_tool.sh TOOL_PATH PROJECT_PATH < params.json
#
# Each top-level parameter becomes an exported RYE_PARAM_<NAME>, name in upper case and every
# character that no variable can have as an underscore: text as it is, numbers and booleans as
# spelled, objects and lists as JSON; null is unset. A value of more than 64 KiB of JSON is left
# out, since the system starts no program with a variable twice that long. The whole JSON is on
# the tool's stdin.
#
# The tool is read into this same shell: one process, and $0 is the tool. It needs bash 4.4.

__rye_fail() {
  printf '%s\n' "$1" >&2
  exit 1
}

# Sets __rye_text to what the JSON string body $1 means.
__rye_unescape() {
  __rye_text=$1
  [[ $1 == *\\* ]] || return 0
  # A control character cannot stand raw in JSON, so \001 can stand for an escaped backslash, and
  # the backslashes that are left all begin an escape.
  local rest=${1//\\\\/$'\001'} pair='\\u([dD][89abAB]..)\\u([dD][c-fC-F]..)' wide
  [[ $rest != *\\u0000* ]] ||
    __rye_fail "a parameter contains a NUL character, which no variable can hold; remove it"
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
    __rye_fail "two parameters would both be $name; rename one of them"
  __rye_seen[$name]=1
  export "$name=$2"
}

# Exports every member of the JSON object on stdin. Splitting at the quotes leaves strings and
# what stands between them; only the latter can open or close anything.
__rye_parameters() {
  # Bytes, not characters: lengths are limits of the kernel, and long texts are cut faster.
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
    else # the shell's own replacing takes quadratic time; such a list of numbers is rare
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
    # A quote behind an odd number of backslashes belongs to the string.
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

# Exports a member whose value $2 still ends in the comma or the brace that follows it.
__rye_member() {
  ((${#2} > limit)) || __rye_export "$1" "${2%?}"
}

__rye_tool=$1
export RYE_PROJECT_PATH=$2
shift 2
IFS= read -r -d '' __rye_json
[[ $__rye_json == \{* ]] || __rye_fail "the parameters on stdin are no JSON object; send one"
__rye_parameters
exec <<<"$__rye_json"
BASH_ARGV0=$__rye_tool
unset -f __rye_fail __rye_utf8 __rye_unescape __rye_export __rye_member __rye_parameters
unset -v __rye_json __rye_text
. "$__rye_tool"
