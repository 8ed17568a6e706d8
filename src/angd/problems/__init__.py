"""Problems: what a model should do, told at one point."""
