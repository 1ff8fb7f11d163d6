#!/usr/bin/env bash
# rye:signed:20261116T031444Z:f09bd9a01b41f0699b5d5c5dc58f9d7b4df0bc35ce4c56ff0f4ff40a0357cfd1:A64WChdf1NWrpbq12Itkl25q0eV4si25-w8CDOFfoeLkCKIRVe--8KdPzQKCW4eRiFypT32TVFkdqcoWfM74BQ==:b6e3ce2753b61fa2
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
# [annotations]
# read_only = true
# open_world = false
# ///

cd "$RYE_PROJECT_PATH" && touch notes.md
grep -F -e "$RYE_PARAM_TEXT" notes.md || echo "no note contains that"
