"""What ``rye doctor`` looks at: each module gives findings, and changes nothing."""
