/*
 * Rows and columns. A row is a struct; a list of fields says once what is in it, and gives both the
 * table for people and the objects of a JSON document.
 */
#ifndef GBX_REPORT_TABLE_H
#define GBX_REPORT_TABLE_H

#include <stddef.h>

#include "report/sink.h"
#include "text/names.h"

/* --- fields --- */

typedef enum gbx_field_kind {
    /* Numbers, which stand on the right: */
    GBX_FIELD_COUNT,   /* an unsigned integer of any width; in tables with commas */
    GBX_FIELD_NUMBER,  /* the same without commas: tasks, slots, rounds */
    GBX_FIELD_F64,     /* double: in tables 5 digits, in JSON exact */
    GBX_FIELD_NS,      /* uint64_t: a time; in JSON nanoseconds */
    GBX_FIELD_ELEMENT, /* uint64_t: raw bits of a value whose dtype, a uint32_t, is at `with` */
    /* Texts: */
    GBX_FIELD_BOOL,   /* bool: yes or no */
    GBX_FIELD_STRING, /* const char *, NULL is null */
    GBX_FIELD_TEXT,   /* char[]: the text lies in the row */
    GBX_FIELD_NAME,   /* an unsigned integer or an enum: in `names`, in tables the brief name */
    GBX_FIELD_DTYPE,  /* uint32_t: its name */
    GBX_FIELD_SHAPE,  /* gbx_tensor: its shape */
    GBX_FIELD_INDEX,  /* uint64_t: row-major number of an element of the gbx_tensor at `with` */
    /* Only in JSON: */
    GBX_FIELD_I64,    /* int64_t */
    GBX_FIELD_WIDE,   /* uint64_t: a number, a string from 2^53 on */
    GBX_FIELD_HEX,    /* uint64_t: a string of an address, an id or raw bits */
    GBX_FIELD_OBJECT, /* a struct: an object on one line, with what `members` says of it */
} gbx_field_kind;

enum { GBX_FIELDS_MAX = 24 }; /* of a table */

/* One member of a row. Zero what is not needed. */
typedef struct gbx_field gbx_field;
struct gbx_field {
    const char *key;     /* in JSON; NULL: not there */
    const char *heading; /* in tables; NULL: not there */
    gbx_field_kind kind;
    uint16_t offset;           /* in the row */
    uint16_t bytes;            /* of the member */
    uint16_t known;            /* where an integer or pointer is 0 if there is no value: null */
    uint16_t known_bytes;      /* of that; 0: there always is one */
    uint16_t with;             /* see the kinds */
    uint16_t member_count;     /* of GBX_FIELD_OBJECT */
    const gbx_field *members;  /* of the struct */
    const gbx_name_set *names; /* of GBX_FIELD_NAME */
    const char *absent; /* in tables in the place of a value that is not known; NULL: empty */
    bool hides_zero;    /* in tables zero is empty */
    bool is_right;      /* a text that stands on the right */
    uint8_t narrowest;  /* that its texts can be cut to, with a mark; 0: they cannot */
    uint8_t leaves;     /* where cut texts do not fit either: 1 leaves first, then 2...; 0 never */
    uint8_t width;      /* at least so wide; for texts that are unknown while measuring */
};

/* GBX_FIELD(type, member, KIND, "key", "HEADING", .narrowest = 8): always there. */
#define GBX_FIELD(type, member, kind_, key_, heading_, ...)                                        \
    {                                                                                              \
        .key = (key_), .heading = (heading_), .kind = GBX_FIELD_##kind_,                           \
        .offset = offsetof(type, member), .bytes = sizeof(((type *)NULL)->member), __VA_ARGS__     \
    }

/* The same, where `known_member` is not 0. */
#define GBX_FIELD_IF(type, known_member, member, kind_, key_, heading_, ...)                       \
    {                                                                                              \
        .key = (key_), .heading = (heading_), .kind = GBX_FIELD_##kind_,                           \
        .offset = offsetof(type, member), .bytes = sizeof(((type *)NULL)->member),                 \
        GBX_KNOWN_IF(type, known_member), __VA_ARGS__                                              \
    }
#define GBX_KNOWN_IF(type, member)                                                                 \
    .known = offsetof(type, member), .known_bytes = sizeof(((type *)NULL)->member)

/* GBX_OBJECT("key", fields, GBX_KNOWN_IF(...)): an object with members of the row itself. With
 * GBX_FIELD and GBX_MEMBERS, with those of a struct in it. */
#define GBX_OBJECT(key_, fields_, ...)                                                             \
    { .key = (key_), .kind = GBX_FIELD_OBJECT, GBX_MEMBERS(fields_), __VA_ARGS__ }
#define GBX_MEMBERS(fields_)                                                                       \
    .members = (fields_), .member_count = sizeof(fields_) / sizeof *(fields_)

/* All rows of an array, with the list that describes them; or rows that are made one at a time. */
typedef struct gbx_rows {
    const gbx_field *fields;
    size_t field_count;
    const void *rows; /* or what rows are made of */
    size_t row_bytes;
    uint64_t count;
    /* NULL for an array. Else it puts a row into `made`; its texts stay valid until the next. */
    gbx_status (*make)(const void *rows, uint64_t number, void *out_row);
    void *made; /* room for one row */
    /* The same for a row of which only widths matter; NULL: `make` does it. Rows of a table come in
     * order, twice: first to be measured, then to be printed. */
    gbx_status (*measure)(const void *rows, uint64_t number, void *out_row);
} gbx_rows;

/* GBX_ROWS(fields, rows, count): both are arrays. */
#define GBX_ROWS(fields_, rows_, count_)                                                           \
    (&(const gbx_rows){.fields = (fields_),                                                        \
                       .field_count = sizeof(fields_) / sizeof *(fields_),                         \
                       .rows = (rows_),                                                            \
                       .row_bytes = sizeof *(rows_),                                               \
                       .count = (count_)})

/* GBX_ROWS_MADE(fields, context, count, make, &row): each is made in `row` when it is needed. */
#define GBX_ROWS_MADE(fields_, context_, count_, make_, row_)                                      \
    (&(const gbx_rows){.fields = (fields_),                                                        \
                       .field_count = sizeof(fields_) / sizeof *(fields_),                         \
                       .rows = (context_),                                                         \
                       .count = (count_),                                                          \
                       .make = (make_),                                                            \
                       .made = (row_)})

/*
 * The columns are those fields that have a heading, `gap` blanks between them; nothing where there
 * are no rows. As wide as its texts, or as the terminal: then long texts are cut, columns without
 * room are left out, and a line below names them. Columns that are empty in all rows are not shown.
 * Elsewhere only the first 65,536 rows and the last are measured, so that a reader of the beginning
 * does not wait: of a longer table all columns are shown, and a longer text later moves the rest of
 * its line.
 */
GBX_MUST_USE gbx_status gbx_rows_print(gbx_sink *sink, const gbx_rows *rows, size_t gap);

/* The members of the first row, in an object that is begun. */
void gbx_json_put_row(gbx_json_writer *json, const gbx_rows *rows);

/* A key and an array of objects, one a line; or one member a line. A row that cannot be made is a
 * failure of the writer. */
void gbx_json_put_rows(gbx_json_writer *json, const char *key, const gbx_rows *rows);
void gbx_json_put_objects(gbx_json_writer *json, const char *key, const gbx_rows *rows);

#endif
