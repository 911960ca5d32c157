# Any version will do: the headers say themselves if they are too old.
set(PACKAGE_VERSION 999)
set(PACKAGE_VERSION_COMPATIBLE TRUE)
