"""The measurements of deployed variants, in rounds in which all variants take turns."""
