#include "store/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glassbox/orchestration.h>

#include "base/checked.h"
#include "base/memory.h"
#include "store/journal/block_range.h"
#include "store/journal/journal_file.h"
#include "store/journal/record_index.h"

struct gbx_reader {
    int fd;
    uint64_t header_bytes; /* of the journal */
    char path[PATH_MAX];
    char payload_path[PATH_MAX];
    gbx_reader_origin origin; /* of these two */
    gbx_import_totals import_totals;
    gbx_payload_file payload;
    unsigned indexed;
    bool has_all_tasks;
    gbx_task_range wanted; /* tasks, if it does not have all */
    gbx_reader_extent extent;
    gbx_reader_totals totals;
    bool has_run;
    gbx_run_info run;
    gbx_record_end *end;        /* with its text, zero terminated; NULL for none */
    gbx_record_outcome outcome; /* from END; `ending` is 0 when it has none */
    gbx_record_sums sums;       /* the same with `state` */
    gbx_record_index index;
    gbx_record_index lists[GBX_LIST_COUNT];
    gbx_journal_source source;
    gbx_journal_block block; /* the one that gbx_reader_next is in */
    uint64_t block_next;     /* offset of the block after it */
    uint32_t block_sequence; /* of that one */
    uint64_t word;           /* of the next record in the block */
    gbx_journal_pages pages;
};

/* --- totals --- */

static void add_to(uint64_t *sum, uint64_t value) {
    if (__builtin_add_overflow(*sum, value, sum))
        *sum = UINT64_MAX;
}

static void count_result(gbx_reader_totals *totals, const gbx_record_tensor *result) {
    totals->results++;
    if (!(result->head.flags & GBX_FLAG_HAS_PAYLOAD))
        return;
    uint64_t end = result->bin_offset + result->bin_size; /* has been checked to fit */
    bool is_duplicate = result->head.flags & GBX_FLAG_DUPLICATE;
    add_to(&totals->result_payload_bytes, result->bin_size);
    add_to(&totals->result_stored_bytes, is_duplicate ? 0 : result->bin_size);
    totals->payload_end = end > totals->payload_end ? end : totals->payload_end;
}

static void count_argument(gbx_reader_totals *totals, const gbx_record *record) {
    bool is_tensor = record->type == GBX_RECORD_TENSOR;
    unsigned flags = is_tensor ? record->flags : record->flags & GBX_FLAG_TRUNCATED;
    if (flags & GBX_FLAG_HAS_PAYLOAD) {
        const gbx_record_tensor *tensor = (const gbx_record_tensor *)record;
        uint64_t end = tensor->bin_offset + tensor->bin_size; /* has been checked to fit */
        add_to(&totals->payload_bytes, tensor->bin_size);
        add_to(&totals->stored_bytes, flags & GBX_FLAG_DUPLICATE ? 0 : tensor->bin_size);
        totals->payload_end = end > totals->payload_end ? end : totals->payload_end;
    }
    if (record->flags & GBX_FLAG_IN_FLIGHT) {
        totals->in_flight++;
        return;
    }
    totals->records++;
    totals->tensors += is_tensor;
    totals->before_dispatch += record->stage == GBX_STAGE_BEFORE;
    totals->after_completion += record->stage == GBX_STAGE_AFTER;
    totals->inputs += record->role == GBX_ROLE_INPUT;
    totals->outputs += record->role == GBX_ROLE_OUTPUT;
    totals->inouts += record->role == GBX_ROLE_INOUT;
    totals->truncated += (flags & GBX_FLAG_TRUNCATED) != 0;
    totals->deduplicated += (flags & GBX_FLAG_DUPLICATE) != 0;
}

void gbx_reader_totals_count(gbx_reader_totals *totals, const gbx_record *record) {
#define COUNTED_IN(member) offsetof(gbx_reader_totals, member)
    static const uint8_t counters[256] = {[GBX_RECORD_TASK] = COUNTED_IN(tasks),
                                          [GBX_RECORD_DISPATCH] = COUNTED_IN(dispatches),
                                          [GBX_RECORD_EXECUTION] = COUNTED_IN(executions),
                                          [GBX_RECORD_SAMPLE] = COUNTED_IN(samples),
                                          [GBX_RECORD_RUN_ARG] = COUNTED_IN(run_args),
                                          [GBX_RECORD_LOSS] = COUNTED_IN(losses),
                                          [GBX_RECORD_SKIPPED] = COUNTED_IN(skipped)};
    if (record->type == GBX_RECORD_SCALAR || record->type == GBX_RECORD_TENSOR)
        count_argument(totals, record);
    else if (record->type == GBX_RECORD_RESULT)
        count_result(totals, (const gbx_record_tensor *)record);
    else if (counters[record->type])
        ++*(uint64_t *)(void *)((char *)totals + counters[record->type]);
    if (record->type == GBX_RECORD_DISPATCH)
        totals->dispatch_args += ((const gbx_record_dispatch *)record)->slot_count;
    if (record->type == GBX_RECORD_FINDING) {
        uint64_t total = ((const gbx_record_finding *)record)->finding.run_total;
        totals->findings = total > totals->findings ? total : totals->findings + (total == 0);
    }
    if (record->type == GBX_RECORD_LOSS)
        add_to(&totals->dropped, ((const gbx_record_loss *)record)->count);
}

/* --- taking in a block that has been checked --- */

/* The list that a type belongs to; GBX_LIST_COUNT for none. */
static gbx_reader_list list_of(unsigned indexed, uint8_t type) {
    switch (type) {
    case GBX_RECORD_RUN_ARG:
        return GBX_LIST_RUN_ARGS;
    case GBX_RECORD_LOSS:
        return GBX_LIST_LOSSES;
    case GBX_RECORD_SKIPPED:
        return GBX_LIST_SKIPPED;
    case GBX_RECORD_RESULT:
        return GBX_LIST_RESULTS;
    case GBX_RECORD_FINDING:
        return GBX_LIST_FINDINGS;
    case GBX_RECORD_SAMPLE:
        return indexed & GBX_INDEX_SAMPLES ? GBX_LIST_SAMPLES : GBX_LIST_COUNT;
    default:
        return GBX_LIST_COUNT;
    }
}

static bool is_indexed(unsigned indexed, uint8_t type) {
    static const uint8_t wanted_for[256] = {
        [GBX_RECORD_SCALAR] = GBX_INDEX_ARGUMENTS,
        [GBX_RECORD_TENSOR] = GBX_INDEX_ARGUMENTS,
        [GBX_RECORD_TASK] = UINT8_MAX, /* for anything */
        [GBX_RECORD_DISPATCH] = GBX_INDEX_DISPATCHES,
        [GBX_RECORD_EXECUTION] = GBX_INDEX_EXECUTIONS,
        [GBX_RECORD_EDGES] = GBX_INDEX_GRAPH,
        [GBX_RECORD_DONE] = GBX_INDEX_GRAPH,
    };
    return indexed & wanted_for[type];
}

static gbx_status take_end(gbx_reader *reader, const gbx_record_end *record) {
    size_t size = (size_t)record->head.words * 8;
    reader->end = malloc(size + 1);
    if (!reader->end)
        return gbx_fail_memory("reading %s", reader->path);
    memcpy(reader->end, record, size);
    uint64_t tail_words;
    const uint64_t *tail = gbx_record_tail(&record->head, &tail_words);
    if (tail_words >= sizeof reader->outcome / 8)
        memcpy(&reader->outcome, tail, sizeof reader->outcome);
    if (tail_words >= (sizeof reader->outcome + sizeof reader->sums) / 8)
        memcpy(&reader->sums, tail + sizeof reader->outcome / 8, sizeof reader->sums);
    ((char *)(reader->end + 1))[record->bytes] = '\0'; /* may overwrite the start of the tail */
    return NULL;
}

static bool is_wanted(const gbx_reader *reader, const gbx_record *record) {
    return reader->has_all_tasks || !(GBX_TYPE_BIT(record->type) & GBX_TASK_TYPES) ||
           (record->task >= reader->wanted.first && record->task <= reader->wanted.last);
}

static gbx_status take_record(gbx_reader *reader, const gbx_record *record, uint64_t offset) {
    if (!gbx_record_is_known(record->type)) {
        reader->extent.newer_count++;
        return NULL;
    }
    if (record->type == GBX_RECORD_RANGE)
        return NULL;
    reader->extent.record_count++;
    if (!is_wanted(reader, record))
        return NULL;
    gbx_reader_totals_count(&reader->totals, record);
    if (is_indexed(reader->indexed, record->type)) {
        gbx_record_index_add(&reader->index, gbx_record_key(record), offset);
        return NULL;
    }
    gbx_reader_list list = list_of(reader->indexed, record->type);
    if (list != GBX_LIST_COUNT) {
        GBX_TRY(gbx_record_index_reserve(&reader->lists[list], 1));
        bool is_sorted = list == GBX_LIST_RUN_ARGS || list == GBX_LIST_RESULTS;
        uint64_t key = is_sorted ? record->arg_index : 0;
        gbx_record_index_add(&reader->lists[list], key, offset);
    } else if (record->type == GBX_RECORD_RUN) {
        const gbx_record_run *run = (const gbx_record_run *)record;
        GBX_TRY(gbx_run_info_parse(reader->path, gbx_record_run_text(run), (size_t)run->bytes,
                                   &reader->run));
        reader->has_run = true;
    } else if (record->type == GBX_RECORD_END) {
        return take_end(reader, (const gbx_record_end *)record);
    }
    return NULL;
}

static const gbx_record *record_at(const gbx_journal_block *block, uint64_t word) {
    return (const gbx_record *)(const void *)(block->records + word);
}

static gbx_status take_block(gbx_reader *reader) {
    const gbx_journal_block *block = &reader->block;
    GBX_TRY(gbx_record_index_reserve(&reader->index, block->header.record_count));
    for (uint64_t word = 0; word < block->record_bytes / 8;) {
        const gbx_record *record = record_at(block, word);
        uint64_t offset = block->offset + sizeof(gbx_block_header) + word * 8;
        GBX_TRY(take_record(reader, record, offset));
        word += record->words;
    }
    return NULL;
}

/* RUN comes first and once, END last: the check across blocks. */
static bool check_order(const gbx_reader *reader, gbx_block_problem *problem) {
    const gbx_journal_block *block = &reader->block;
    bool has_end = reader->end != NULL;
    for (uint64_t word = 0; word < block->record_bytes / 8;) {
        const gbx_record *record = record_at(block, word);
        bool is_first = reader->extent.block_count == 0 && word == 0;
        problem->offset = block->offset + sizeof(gbx_block_header) + word * 8;
        if ((record->type == GBX_RECORD_RUN) != is_first) {
            problem->stop = GBX_STOP_BAD_RECORD;
            snprintf(problem->text, sizeof problem->text, "%s",
                     is_first ? "the first record is not RUN" : "there is a second RUN record");
            return false;
        }
        if (has_end) {
            problem->stop = GBX_STOP_AFTER_END;
            snprintf(problem->text, sizeof problem->text, "a record follows END");
            return false;
        }
        has_end = record->type == GBX_RECORD_END;
        word += record->words;
    }
    return true;
}

/* --- opening --- */

/* Loads the head of the next block. *out_is_good is false at the end or when something is wrong. */
static gbx_status load_head(gbx_reader *reader, bool *out_is_good, gbx_block_problem *out_problem) {
    reader->word = 0;
    return gbx_journal_read_head(&reader->source, reader->block_next, reader->block_sequence,
                                 &reader->block, out_is_good, out_problem);
}

static void pass_block(gbx_reader *reader) {
    reader->block_next += sizeof(gbx_block_header) + reader->block.header.record_bytes;
    reader->block_sequence++;
}

/* Whether the block that begins here can be passed over: nothing in it is of interest, and it
 * cannot be out of order. */
static bool can_skip(const gbx_reader *reader) {
    uint64_t ignored = GBX_TYPE_BIT(GBX_RECORD_RANGE);
    if (!(reader->indexed & GBX_INDEX_SAMPLES))
        ignored |= GBX_TYPE_BIT(GBX_RECORD_SAMPLE);
    return !reader->has_all_tasks && reader->block.has_range && reader->has_run && !reader->end &&
           !gbx_block_range_may_hold(&reader->block.range, reader->wanted, ignored);
}

/* Takes in the block whose head was loaded. *out_is_whole is false when something is wrong. */
static gbx_status take_in(gbx_reader *reader, bool *out_is_whole, gbx_block_problem *out_problem) {
    *out_is_whole = true;
    if (can_skip(reader)) {
        reader->extent.record_count += reader->block.header.record_count - 1; /* without RANGE */
        reader->extent.skipped_blocks++;
        return NULL;
    }
    GBX_TRY(gbx_journal_read_records(&reader->source, &reader->block, out_is_whole, out_problem));
    *out_is_whole = *out_is_whole && check_order(reader, out_problem);
    return *out_is_whole ? take_block(reader) : NULL;
}

static gbx_status scan(gbx_reader *reader) {
    gbx_reader_extent *extent = &reader->extent;
    gbx_block_problem problem = {0};
    gbx_reader_rewind(reader);
    for (;;) {
        bool is_good = false;
        extent->good_bytes = reader->block_next;
        GBX_TRY(load_head(reader, &is_good, &problem));
        if (is_good)
            GBX_TRY(take_in(reader, &is_good, &problem));
        if (!is_good)
            break;
        extent->block_count++;
        pass_block(reader);
    }
    if (problem.stop == GBX_STOP_NEWER)
        return gbx_fail(GBX_UNSUPPORTED,
                        "%s: at offset %" PRIu64 ", %s: reading this dump needs a newer glassbox",
                        reader->path, problem.offset, problem.text);
    extent->stop = problem.stop;
    extent->stop_offset = problem.offset;
    memcpy(extent->stop_text, problem.text, sizeof problem.text);
    return NULL;
}

static gbx_status set_path(char out_path[PATH_MAX], const char *directory, const char *name) {
    int length = snprintf(out_path, PATH_MAX, "%s/%s", directory, name);
    if (length < 0 || length >= PATH_MAX)
        return gbx_fail(GBX_INVALID_ARGUMENT, "the path of the dump %.64s... is too long",
                        directory);
    return NULL;
}

/* *out_is_there is false, and nothing is open, when the dump has no journal. */
static gbx_status open_file(gbx_reader *reader, const char *directory, bool *out_is_there) {
    GBX_TRY(set_path(reader->path, directory, "tensor_dump/tensor_dump.rec"));
    GBX_TRY(set_path(reader->payload_path, directory, "tensor_dump/tensor_dump.bin"));
    /* Not blocking: a pipe without a writer is refused, not waited for. */
    reader->fd = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *out_is_there = reader->fd >= 0;
    if (reader->fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return NULL;
    if (reader->fd < 0)
        return gbx_fail(GBX_IO, "cannot open the journal %s: %s", reader->path, strerror(errno));
    struct stat about;
    if (fstat(reader->fd, &about) != 0)
        return gbx_fail(GBX_IO, "cannot read %s: %s", reader->path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return gbx_fail(GBX_IO, "cannot read %s: it is not a regular file", reader->path);
    reader->extent.file_bytes = (uint64_t)about.st_size;
    return gbx_journal_check_header(reader->fd, reader->path, &reader->header_bytes);
}

/* Converts a manifest into a journal and opens that. */
static gbx_status open_manifest(gbx_reader *reader, const char *directory) {
    gbx_import import = {.fd = -1};
    bool is_there = false;
    GBX_TRY(gbx_import_find(directory, import.path, &is_there));
    if (!is_there)
        return gbx_fail(GBX_NOT_FOUND,
                        "cannot open the journal %s: it does not exist, and there is no manifest "
                        "(tensor_dump.json, or args_dump.json with bin_file) to read instead",
                        reader->path);
    GBX_TRY(gbx_import_read(&import));
    reader->fd = import.fd;
    reader->header_bytes = sizeof(gbx_journal_header);
    reader->extent.file_bytes = import.bytes;
    reader->import_totals = import.totals;
    reader->origin.is_journal = false;
    reader->origin.known = import.known;
    reader->origin.has_findings = import.has_findings;
    memcpy(reader->path, import.path, sizeof reader->path);
    memcpy(reader->payload_path, import.payload_path, sizeof reader->payload_path);
    return NULL;
}

static gbx_status open_records(gbx_reader *reader, const char *directory) {
    bool is_there = false;
    GBX_TRY(open_file(reader, directory, &is_there));
    if (!is_there)
        GBX_TRY(open_manifest(reader, directory));
    uint64_t room = reader->extent.file_bytes;
    reader->source.fd = reader->fd;
    reader->source.path = reader->path;
    reader->source.end = room;
    reader->block.records = malloc(room < GBX_BLOCK_MAX_BYTES ? room : GBX_BLOCK_MAX_BYTES);
    if (!reader->block.records)
        return gbx_fail_memory("reading %s", reader->path);
    GBX_TRY(scan(reader));
    if (!reader->has_run)
        return gbx_fail(GBX_BAD_FORMAT, "%s has no readable block: at offset %" PRIu64 ", %s",
                        reader->path, reader->extent.stop_offset,
                        reader->extent.stop == GBX_STOP_END ? "the file ends"
                                                            : reader->extent.stop_text);
    reader->source.end = reader->extent.good_bytes;
    GBX_TRY(gbx_journal_pages_create(&reader->pages, reader->fd, reader->path,
                                     reader->extent.good_bytes));
    gbx_record_index_sort(&reader->index);
    gbx_record_index_sort(&reader->lists[GBX_LIST_RUN_ARGS]);
    gbx_record_index_sort(&reader->lists[GBX_LIST_RESULTS]);
    gbx_reader_rewind(reader);
    return NULL;
}

static gbx_status open_reader(const char *directory, unsigned indexed, const gbx_task_range *wanted,
                              gbx_reader **out_reader) {
    gbx_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return gbx_fail_memory("reading the dump %s", directory);
    reader->fd = -1;
    reader->payload.fd = -1;
    reader->indexed = indexed;
    reader->has_all_tasks = !wanted;
    if (wanted)
        reader->wanted = *wanted;
    reader->origin = (gbx_reader_origin){.records_path = reader->path,
                                         .payload_path = reader->payload_path,
                                         .is_journal = true,
                                         .has_findings = true,
                                         .known = GBX_KNOWN_ALL};
    gbx_status status = open_records(reader, directory);
    if (status)
        gbx_reader_close(reader);
    else
        *out_reader = reader;
    return status;
}

gbx_status gbx_reader_open(const char *directory, unsigned indexed, gbx_reader **out_reader) {
    return open_reader(directory, indexed, NULL, out_reader);
}

gbx_status gbx_reader_open_tasks(const char *directory, unsigned indexed, uint64_t first,
                                 uint64_t last, gbx_reader **out_reader) {
    const gbx_task_range wanted = {first, last};
    return open_reader(directory, indexed, &wanted, out_reader);
}

bool gbx_reader_has_all_tasks(const gbx_reader *reader) {
    return reader->has_all_tasks;
}

void gbx_reader_close(gbx_reader *reader) {
    if (!reader)
        return;
    gbx_record_index_free(&reader->index);
    for (size_t i = 0; i < GBX_LIST_COUNT; ++i)
        gbx_record_index_free(&reader->lists[i]);
    if (reader->has_run)
        gbx_run_info_free(&reader->run);
    gbx_journal_pages_destroy(&reader->pages);
    free(reader->block.records);
    free(reader->end);
    gbx_payload_file_close(&reader->payload);
    if (reader->fd >= 0)
        close(reader->fd);
    free(reader);
}

/* --- the dump as a whole --- */

const gbx_reader_origin *gbx_reader_get_origin(const gbx_reader *reader) {
    return &reader->origin;
}

const gbx_reader_extent *gbx_reader_get_extent(const gbx_reader *reader) {
    return &reader->extent;
}

bool gbx_reader_stop_is_damage(gbx_reader_stop stop) {
    return stop == GBX_STOP_CUT || stop == GBX_STOP_BAD_MAGIC || stop == GBX_STOP_BAD_CHECKSUM ||
           stop == GBX_STOP_BAD_SEQUENCE;
}

const gbx_run_info *gbx_reader_run(const gbx_reader *reader) {
    return &reader->run;
}

const gbx_record_end *gbx_reader_end(const gbx_reader *reader) {
    return reader->end;
}

const char *gbx_reader_end_text(const gbx_reader *reader) {
    return reader->end ? gbx_record_end_text(reader->end) : "";
}

const gbx_record_outcome *gbx_reader_outcome(const gbx_reader *reader) {
    return reader->outcome.ending ? &reader->outcome : NULL;
}

const gbx_record_sums *gbx_reader_sums(const gbx_reader *reader) {
    return reader->sums.state == GBX_SUMS_EXACT ? &reader->sums : NULL;
}

gbx_run_ending gbx_reader_ending(const gbx_reader *reader) {
    if (reader->outcome.ending)
        return reader->outcome.ending <= GBX_ENDING_FAILED ? (gbx_run_ending)reader->outcome.ending
                                                           : GBX_ENDING_UNKNOWN;
    /*
     * Dumps without an outcome (glassbox 0.1.0, other tools, manifests without a journal) have only
     * the text of END. This is the only place that interprets it: these two are what 0.1.0 wrote
     * for a run that finished; later versions add to the second why.
     */
    static const char lost[] = "done, but records were lost";
    const char *sentence = gbx_reader_end_text(reader);
    if (strcmp(sentence, "ok") == 0)
        return GBX_ENDING_WELL;
    return strncmp(sentence, lost, strlen(lost)) == 0 ? GBX_ENDING_RECORDS_LOST
                                                      : GBX_ENDING_UNKNOWN;
}

bool gbx_reader_has_ended_well(const gbx_reader *reader) {
    return gbx_reader_ending(reader) == GBX_ENDING_WELL;
}

bool gbx_reader_is_complete(const gbx_reader *reader) {
    bool is_good = reader->extent.stop == GBX_STOP_END;
    return is_good && reader->end && (reader->end->head.flags & GBX_FLAG_COMPLETE);
}

const gbx_reader_totals *gbx_reader_get_totals(const gbx_reader *reader) {
    return reader->has_all_tasks ? &reader->totals : NULL;
}

uint64_t gbx_reader_dropped(const gbx_reader *reader) {
    return reader->totals.dropped;
}

const gbx_import_totals *gbx_reader_get_import_totals(const gbx_reader *reader) {
    return reader->origin.is_journal ? NULL : &reader->import_totals;
}

/* --- records --- */

static gbx_status fail_changed(const gbx_reader *reader, uint64_t offset) {
    return gbx_fail(GBX_BAD_FORMAT,
                    "%s changed while it was being read: at offset %" PRIu64
                    ", there is a different record now",
                    reader->path, offset);
}

void gbx_reader_rewind(gbx_reader *reader) {
    reader->block_next = reader->header_bytes;
    reader->block_sequence = 0;
    reader->block.record_bytes = 0;
    reader->source.window_bytes = 0; /* the file may have changed */
    reader->word = 0;
}

/* *out_is_good is false when the block is not what it was. */
static gbx_status load_whole(gbx_reader *reader, bool *out_is_good) {
    gbx_block_problem problem = {0};
    GBX_TRY(load_head(reader, out_is_good, &problem));
    if (!*out_is_good)
        return NULL;
    return gbx_journal_read_records(&reader->source, &reader->block, out_is_good, &problem);
}

gbx_status gbx_reader_next(gbx_reader *reader, const gbx_record **out_record,
                           uint64_t *out_offset) {
    *out_record = NULL;
    while (!*out_record) {
        if (reader->word == reader->block.record_bytes / 8) {
            bool is_good = false;
            if (reader->block_next >= reader->extent.good_bytes)
                return NULL;
            GBX_TRY(load_whole(reader, &is_good));
            if (!is_good)
                return fail_changed(reader, reader->block_next);
            pass_block(reader);
        }
        const gbx_record *record = record_at(&reader->block, reader->word);
        *out_offset = reader->block.offset + sizeof(gbx_block_header) + reader->word * 8;
        reader->word += record->words;
        if (gbx_record_is_known(record->type) && record->type != GBX_RECORD_RANGE)
            *out_record = record;
    }
    return NULL;
}

/* Reads and checks a record again: the file may have changed. */
static gbx_status read_record(gbx_reader *reader, uint64_t offset, const gbx_record **out_record) {
    const void *bytes = NULL;
    GBX_TRY(gbx_journal_pages_get(&reader->pages, offset, sizeof(gbx_record), &bytes));
    uint32_t words = ((const gbx_record *)bytes)->words;
    if (words < sizeof(gbx_record) / 8 || words > GBX_BLOCK_MAX_BYTES / 8)
        return fail_changed(reader, offset);
    GBX_TRY(gbx_journal_pages_get(&reader->pages, offset, (size_t)words * 8, &bytes));
    if (gbx_record_check(bytes, words))
        return fail_changed(reader, offset);
    *out_record = bytes;
    return NULL;
}

uint64_t gbx_reader_count(const gbx_reader *reader) {
    return reader->index.count;
}

gbx_status gbx_reader_at(gbx_reader *reader, uint64_t position, const gbx_record **out_record) {
    const gbx_index_entry *entry = &reader->index.entries[position];
    const gbx_record *record = NULL;
    GBX_TRY(read_record(reader, entry->offset, &record));
    if (!is_indexed(reader->indexed, record->type) || gbx_record_key(record) != entry->key)
        return fail_changed(reader, entry->offset);
    *out_record = record;
    return NULL;
}

unsigned gbx_reader_kind(const gbx_reader *reader, uint64_t position) {
    static const unsigned kinds[] = {[GBX_CLASS_TASK] = 0,
                                     [GBX_CLASS_ARGUMENT] = GBX_INDEX_ARGUMENTS,
                                     [GBX_CLASS_DISPATCH] = GBX_INDEX_DISPATCHES,
                                     [GBX_CLASS_GRAPH] = GBX_INDEX_GRAPH};
    const gbx_index_entry *entry = &reader->index.entries[position];
    return gbx_index_is_execution(entry) ? GBX_INDEX_EXECUTIONS : kinds[gbx_index_class(entry)];
}

uint64_t gbx_reader_find(const gbx_reader *reader, uint64_t task) {
    if (task >= GBX_RECORD_TASK_END)
        return reader->index.count;
    return gbx_record_index_find(&reader->index, task << GBX_TASK_SHIFT);
}

/* Copies the first `bytes` of the record at `position`, if it has the key. */
static gbx_status copy_found(gbx_reader *reader, uint64_t position, uint64_t key, uint8_t type,
                             void *to, size_t bytes, bool *out_is_found) {
    const gbx_record *record = NULL;
    *out_is_found = false;
    if (position == reader->index.count || reader->index.entries[position].key != key)
        return NULL;
    GBX_TRY(gbx_reader_at(reader, position, &record));
    if (record->type != type)
        return fail_changed(reader, reader->index.entries[position].offset);
    memcpy(to, record, bytes);
    *out_is_found = true;
    return NULL;
}

gbx_status gbx_reader_find_task(gbx_reader *reader, uint64_t task, gbx_record_task *out_task,
                                bool *out_is_found) {
    return copy_found(reader, gbx_reader_find(reader, task), task << GBX_TASK_SHIFT,
                      GBX_RECORD_TASK, out_task, sizeof *out_task, out_is_found);
}

gbx_status gbx_reader_find_execution(gbx_reader *reader, uint64_t position,
                                     gbx_record_execution *out_execution, bool *out_is_found) {
    uint64_t key = gbx_index_execution_of(&reader->index.entries[position]);
    return copy_found(reader, gbx_record_index_find(&reader->index, key), key, GBX_RECORD_EXECUTION,
                      out_execution, sizeof *out_execution, out_is_found);
}

uint64_t gbx_reader_list_count(const gbx_reader *reader, gbx_reader_list list) {
    return reader->lists[list].count;
}

gbx_status gbx_reader_list_at(gbx_reader *reader, gbx_reader_list list, uint64_t position,
                              const gbx_record **out_record) {
    uint64_t offset = reader->lists[list].entries[position].offset;
    const gbx_record *record = NULL;
    GBX_TRY(read_record(reader, offset, &record));
    if (!record || list_of(reader->indexed, record->type) != list)
        return fail_changed(reader, offset);
    *out_record = record;
    return NULL;
}

uint64_t gbx_reader_result_count(const gbx_reader *reader) {
    return gbx_reader_list_count(reader, GBX_LIST_RESULTS);
}

gbx_status gbx_reader_result(gbx_reader *reader, uint64_t position, gbx_result *out_result) {
    const gbx_record *record = NULL;
    GBX_TRY(gbx_reader_list_at(reader, GBX_LIST_RESULTS, position, &record));
    const gbx_record_tensor *result = (const gbx_record_tensor *)record;
    bool is_named = record->arg_index < reader->run.argument_count;
    *out_result =
        (gbx_result){.record = result,
                     .name = is_named ? reader->run.arguments[record->arg_index].name : NULL,
                     .arg_index = record->arg_index,
                     .role = (gbx_role)record->role,
                     .is_in_flight = (record->flags & GBX_FLAG_IN_FLIGHT) != 0};
    out_result->pieces = gbx_record_pieces(result, &out_result->piece_count);
    return NULL;
}

/* --- payload --- */

static bool is_beyond(const gbx_reader *reader, const gbx_record_tensor *tensor) {
    return (tensor->head.flags & GBX_FLAG_HAS_PAYLOAD) &&
           !gbx_range_is_inside(tensor->bin_offset, tensor->bin_size, reader->payload.bytes);
}

/* Names the first entry or result whose bytes lie beyond the end of the file; there is one. */
static gbx_status fail_beyond(gbx_reader *reader) {
    uint64_t entry = 0;
    for (uint64_t i = 0; i < reader->index.count; ++i) {
        const gbx_record *record = NULL;
        if (gbx_reader_kind(reader, i) != GBX_INDEX_ARGUMENTS)
            continue;
        GBX_TRY(gbx_reader_at(reader, i, &record));
        const gbx_record_tensor *tensor = (const gbx_record_tensor *)record;
        if (record->type == GBX_RECORD_TENSOR && is_beyond(reader, tensor))
            return gbx_fail(GBX_BAD_FORMAT,
                            "%s: entry %" PRIu64 " (task %" PRIu64 ", argument %u) has %" PRIu64
                            " bytes at offset %" PRIu64 ", but %s ends at %" PRIu64,
                            reader->path, entry, record->task, record->arg_index, tensor->bin_size,
                            tensor->bin_offset, reader->payload_path, reader->payload.bytes);
        ++entry;
    }
    for (uint64_t i = 0; i < gbx_reader_result_count(reader); ++i) {
        gbx_result result;
        GBX_TRY(gbx_reader_result(reader, i, &result));
        if (is_beyond(reader, result.record))
            return gbx_fail(GBX_BAD_FORMAT,
                            "%s: result %" PRIu64 " (argument %u of the run) has %" PRIu64
                            " bytes at offset %" PRIu64 ", but %s ends at %" PRIu64,
                            reader->path, i, result.arg_index, result.record->bin_size,
                            result.record->bin_offset, reader->payload_path, reader->payload.bytes);
    }
    return gbx_fail(
        GBX_BAD_FORMAT, "%s: the payload should end at %" PRIu64 ", but %s ends at %" PRIu64,
        reader->path, reader->totals.payload_end, reader->payload_path, reader->payload.bytes);
}

gbx_status gbx_reader_open_payload(gbx_reader *reader) {
    if (reader->totals.payload_end == 0)
        return NULL;
    GBX_TRY(gbx_payload_file_open(&reader->payload, reader->payload_path));
    return reader->totals.payload_end <= reader->payload.bytes ? NULL : fail_beyond(reader);
}

gbx_status gbx_reader_read_payload(const gbx_reader *reader, uint64_t offset, void *bytes,
                                   size_t size) {
    return gbx_payload_file_read(&reader->payload, offset, bytes, size);
}

bool gbx_reader_map_payload(const gbx_reader *reader, uint64_t offset, size_t size,
                            gbx_payload_map *out_map) {
    return gbx_payload_file_map(&reader->payload, offset, size, out_map);
}
