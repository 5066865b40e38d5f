#include "diagnose/statics.h"

#include <ctype.h>
#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/numbers.h"

enum { FILE_BYTES_MAX = 64 << 20, NAME_MAX_BYTES = 256 };

/* A file of which nothing is believed. */
typedef struct image {
    const char *bytes;
    size_t size;
    Elf64_Ehdr head;
} image;

static bool get(const image *file, uint64_t offset, void *to, size_t size) {
    if (offset > file->size || size > file->size - offset)
        return false;
    memcpy(to, file->bytes + offset, size);
    return true;
}

static bool get_section(const image *file, uint32_t number, Elf64_Shdr *out_section) {
    return number < file->head.e_shnum &&
           get(file, file->head.e_shoff + (uint64_t)number * sizeof *out_section, out_section,
               sizeof *out_section);
}

/* A name in a string table; "" where it does not end in it, or has no end. */
static const char *name_at(const image *file, const Elf64_Shdr *strings, uint32_t offset) {
    if (offset >= strings->sh_size || strings->sh_offset > file->size ||
        strings->sh_size > file->size - strings->sh_offset)
        return "";
    const char *name = file->bytes + strings->sh_offset + offset;
    return memchr(name, '\0', gbx_min_u64(strings->sh_size - offset, NAME_MAX_BYTES)) ? name : "";
}

/* Of the C library's own start files. */
static bool is_foreign(const char *file) {
    return strncmp(file, "crt", 3) == 0 || file[0] == '\0';
}

/* Constants with addresses in them lie where the loader writes, but nobody else may. */
static bool is_constant(const image *file, const Elf64_Shdr *section) {
    Elf64_Shdr names;
    return get_section(file, file->head.e_shstrndx, &names) &&
           strncmp(name_at(file, &names, section->sh_name), ".data.rel.ro", 12) == 0;
}

static bool is_variable(const image *file, const Elf64_Sym *symbol) {
    Elf64_Shdr section;
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_size > 0 &&
           get_section(file, symbol->st_shndx, &section) && section.sh_flags & SHF_WRITE &&
           !is_constant(file, &section);
}

/* "largest" of "largest.0", as compilers call the statics of functions. */
static void keep_name(const char *name, gbx_static *out) {
    snprintf(out->name, sizeof out->name, "%s", name);
    char *dot = strchr(out->name, '.');
    if (dot && dot != out->name && isdigit((unsigned char)dot[1]))
        *dot = '\0';
}

static void look_in_table(const image *file, const Elf64_Shdr *table, gbx_static *out) {
    Elf64_Shdr strings;
    Elf64_Sym symbol;
    bool is_own = true; /* global symbols follow, without a file */
    if (!get_section(file, table->sh_link, &strings))
        return;
    for (uint64_t at = 0; at + sizeof symbol <= table->sh_size && !out->name[0];
         at += sizeof symbol) {
        if (!get(file, table->sh_offset + at, &symbol, sizeof symbol))
            return;
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FILE)
            is_own = !is_foreign(name_at(file, &strings, symbol.st_name));
        else if (ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL)
            is_own = true;
        if (!is_own || !is_variable(file, &symbol))
            continue;
        const char *name = name_at(file, &strings, symbol.st_name);
        if (name[0] && name[0] != '_')
            keep_name(name, out);
    }
}

static void look_in_object(const image *file, gbx_static *out) {
    Elf64_Shdr section;
    for (uint32_t i = 0; get_section(file, i, &section); ++i)
        if (section.sh_type == SHT_SYMTAB)
            look_in_table(file, &section, out);
}

/* The first line with "static" and the name; else the first with the name. */
static void look_in_source(const char *text, gbx_static *out) {
    size_t length = strlen(out->name);
    uint32_t number = 1;
    for (const char *line = text; *line; ++number) {
        size_t size = strcspn(line, "\n");
        const char *found = memmem(line, size, out->name, length);
        bool is_static = memmem(line, size, "static", 6) != NULL;
        if (found && (is_static || out->line == 0)) {
            out->line = number;
            if (is_static)
                return;
        }
        line += size;
        line += *line == '\n';
    }
}

gbx_status gbx_static_find(const char *object, const char *source, gbx_static *out_static) {
    char *bytes, *text = NULL;
    image file = {0};
    *out_static = (gbx_static){0};
    GBX_TRY(gbx_read_file(object, FILE_BYTES_MAX, &bytes, &file.size));
    file.bytes = bytes;
    if (get(&file, 0, &file.head, sizeof file.head) &&
        memcmp(file.head.e_ident, ELFMAG, SELFMAG) == 0 &&
        file.head.e_ident[EI_CLASS] == ELFCLASS64)
        look_in_object(&file, out_static);
    free(bytes);
    if (!out_static->name[0] || !source)
        return NULL;
    size_t size;
    gbx_status status = gbx_read_file(source, FILE_BYTES_MAX, &text, &size);
    if (!status)
        look_in_source(text, out_static);
    gbx_status_free(status); /* only the line is unknown then */
    free(text);
    return NULL;
}
