"""Reading and writing files safely: atomic writes, bounded reads, private folders."""
