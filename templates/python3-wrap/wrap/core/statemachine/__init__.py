"""Amazon States Language as a pure state machine: data flow, paths, templates, choices, Maps.

The package imports no other part of the project: wraps and tools import it under two names.

References
----------
The specification at https://states-language.net, and AWS's Step Functions Developer Guide where it
is more precise. Both refer to Jayway JsonPath for paths.
"""
