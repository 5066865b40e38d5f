/* A source file and the files that it includes with "", directly or through others. */
#ifndef GBX_STORE_RUN_SOURCE_TREE_H
#define GBX_STORE_RUN_SOURCE_TREE_H

#include <stddef.h>

#include "base/status.h"

enum { GBX_SOURCE_TREE_FILES = 256 };

typedef struct gbx_source_tree {
    char *paths[GBX_SOURCE_TREE_FILES]; /* absolute, without "." and ".."; the source first */
    char *texts[GBX_SOURCE_TREE_FILES];
    size_t sizes[GBX_SOURCE_TREE_FILES];
    size_t count;
    size_t root_length; /* of the common part of all paths, with its slash */
} gbx_source_tree;

/*
 * Finds the files only by lines `#include "NAME"`, ignoring conditions around them. Leaves out a
 * NAME that is not beside the including file (-I may find it, or it may be conditional), and files
 * beyond GBX_SOURCE_TREE_FILES. Fails when the source itself cannot be read.
 */
GBX_MUST_USE gbx_status gbx_source_tree_read(const char *path, gbx_source_tree **out_tree);
void gbx_source_tree_free(gbx_source_tree *tree); /* takes NULL */

#endif
