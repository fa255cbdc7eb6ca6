"""The verbs of the palace: each decides in core/, then acts through storage/ and index/."""
