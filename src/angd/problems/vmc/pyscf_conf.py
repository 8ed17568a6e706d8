"""Empty: what pyscf reads instead of a `.pyscf_conf.py` that happens to lie in the working folder."""
