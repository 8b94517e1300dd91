"""Steps as compiled calls, with dense matrices or sparse ones."""
