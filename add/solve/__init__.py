"""The solution of one implicit step: Newton, its fallbacks, hybrid friction."""
