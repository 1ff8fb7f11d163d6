# rye:signed:20261118T112357Z:a747c0e6d99617fa2bb5ae38548e4864e4a5b0274a84584abf72a72cbf934566:gbLFyQZP4m2VzrYDzTj5HfoVwUmcwg5mCa513qAGanVz7t1VEtrP8PRZvHCFA_BvNay2a1-yT23xECpqUrQnBw==:f3b8c4ccdd3d0f3f
# /// rye
# version = "1.0.0"
# tool_type = "awk"
# executor_id = "runtimes/awk_runtime"
# category = "notes"
# description = "Show the longest note"
#
# [permissions]
# read = ["{project_path}/notes"]
#
# [annotations]
# read_only = true
# open_world = false
# ///

BEGIN {
    while ((getline line < "notes/notes.md") > 0)
        if (length(line) > length(longest)) longest = line
    print longest
}
