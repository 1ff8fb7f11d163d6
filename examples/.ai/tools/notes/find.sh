#!/usr/bin/env bash
# rye:signed:20261118T112432Z:6c691bfc341ada4d09d1dcd082f42b8ec8f4889a82172055897b6c60a9234ba6:7cJtld7liwefk9oWywMmMt0A9B4S6p7l6mSkUrB_jFQB2SX2t_RNYLwIYg7ujxuWyftE2hDlYJilx6FSreGWCA==:f3b8c4ccdd3d0f3f
# /// rye
# version = "1.0.0"
# tool_type = "shell"
# executor_id = "rye/core/runtimes/bash_runtime"
# category = "notes"
# description = "Find notes that contain a text"
#
# [config_schema]
# type = "object"
# required = ["text"]
# additionalProperties = false
#
# [config_schema.properties.text]
# type = "string"
# minLength = 1
# description = "What to look for; it is no pattern"
#
# [permissions]
# read = ["{project_path}/notes"]
# run = ["grep"]
#
# [annotations]
# read_only = true
# open_world = false
# ///

cd "$RYE_PROJECT_PATH" || exit
grep -F -s -e "$RYE_PARAM_TEXT" notes/notes.md || echo "no note contains that"
