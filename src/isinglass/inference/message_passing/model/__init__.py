"""The model in the form that message passing uses, and where its tables lie."""
