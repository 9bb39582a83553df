"""Reading and writing photos: the only code that touches image files; metadata is never passed on."""
