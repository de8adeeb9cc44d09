"""The data flow of Amazon States Language, with JSONPath: paths, templates, intrinsics, choices.

It is pure and imports nothing else of ours, as wraps and the tools both have it, under two names.

References
----------
The specification at https://states-language.net, and AWS's pages on Step Functions where they say
more; paths are those of Jayway JsonPath, which both name.
"""
