# rye:signed:20261116T031444Z:4d19eaf52be6ca0799695cb35e66cfcc1e7f7cf4725eb1a0643fe38fbb3f7318:e8NX-VJBpNZqC75hk0u24i_vShST7IVtlGKFtLFIyXWcBZPbVDarrjWiEi_oKWMbzTihTwRZ0MPXBrUeqBpDBA==:b6e3ce2753b61fa2
# /// rye
# version = "1.0.0"
# tool_type = "awk"
# executor_id = "runtimes/awk_runtime"
# category = "notes"
# description = "Show the longest note"
#
# [annotations]
# read_only = true
# open_world = false
# ///

BEGIN {
    while ((getline line < "notes.md") > 0)
        if (length(line) > length(longest)) longest = line
    print longest
}
