/*
 * Every field of the manifests, once: the writer expands these lists into code (manifest.c,
 * manifest_tensors.c), `verify` compares its output with the files, `import` looks up names in
 * them, and `view --json` prints through the writer. docs/format.md explains the fields.
 *
 * To add a field:
 *   1. Add its row where it belongs in the order of the file, with the rule LATER.
 *   2. If no kind below fits, write put_KIND in internal.h: it puts the value at `at` and returns
 *      where the next byte goes. A number that may reach 2^53 also needs is_exact_KIND.
 *   3. If `import` needs it, get it by GBX_FIELD_name in import_entry.c; otherwise it is ignored.
 *   4. Add it to docs/format.md, and to the independent tests: tests/support/dump_files.h and
 *      python/glassbox.
 *
 * A row is X(name, rule, kind, present, place...); in `tensors` X(name, rule, kept, kind, present,
 * place...).
 *
 *   rule     what `verify` asks of a file:
 *            ALWAYS  every version writes it: it must be present and equal
 *            LATER   only later versions write it: if the first entry lacks it, an older version
 *                    wrote the file; otherwise it must be present and equal
 *            ENDED   like ALWAYS, if the journal has END
 *            NEVER   not compared: it is for people, or the place of the file
 *   kept     how long the text of the value is kept: RECORD (put for each), TASK (for all records
 *            of a task) or FORM (for all of the same role, stage, kind and dtype)
 *   kind     put_KIND(m, at, place...) of internal.h puts it
 *   present  whether the entry has it
 *   place    where its value is; expressions of the writer, in which `m` is the gbx_manifest
 */
#ifndef GBX_STORE_MANIFEST_MANIFEST_FIELDS_H
#define GBX_STORE_MANIFEST_MANIFEST_FIELDS_H

/* clang-format off */

/* --- tensor_dump.json --- */

#define GBX_TENSORS_HEAD_FIELDS(X)                                                                 \
    X(schema_version,       ALWAYS, u64,        true, 1)                                           \
    X(generator,            ALWAYS, string,     true, m->run->generator)                           \
    X(run,                  ALWAYS, run,        true, m->run)                                      \
    X(run_dir,              NEVER,  string,     true, m->run_directory)                            \
    X(bin_file,             ALWAYS, string,     true, m->payload_name)                             \
    X(bin_format,           ALWAYS, bin_format, true, m)                                           \
    X(dump_level,           ALWAYS, string,     true, m->run->dump_level)                          \
    X(complete,             ALWAYS, flag,       m->known & GBX_KNOWN_STATUS,                       \
                                                gbx_reader_is_complete(m->reader))                 \
    X(status,               ENDED,  string,     m->known & GBX_KNOWN_STATUS,                       \
                                                m->end ? gbx_reader_end_text(m->reader) : "killed")\
    X(total_tensors,        ALWAYS, u64,        true, m->totals->records)                          \
    X(before_dispatch,      ALWAYS, u64,        true, m->totals->before_dispatch)                  \
    X(after_completion,     ALWAYS, u64,        true, m->totals->after_completion)                 \
    X(input_tensors,        ALWAYS, u64,        true, m->totals->inputs)                           \
    X(output_tensors,       ALWAYS, u64,        true, m->totals->outputs)                          \
    X(inout_tensors,        ALWAYS, u64,        true, m->totals->inouts)                           \
    X(in_flight_tensors,    ALWAYS, u64,        true, m->totals->in_flight)                        \
    X(truncated_tensors,    ALWAYS, u64,        true, m->totals->truncated)                        \
    X(dropped_records,      ALWAYS, u64,        true, m->totals->dropped)                          \
    X(dropped_overwrite,    ALWAYS, u64,        true, 0)                                           \
    X(deduplicated_tensors, ALWAYS, u64,        true, m->totals->deduplicated)                     \
    X(payload_bytes,        ALWAYS, u64,        true, m->totals->payload_bytes)                    \
    X(stored_bytes,         ALWAYS, u64,        true, m->totals->stored_bytes)                     \
    X(stall_ns,             ALWAYS, u64,        true, m->end ? m->end->stall_ns : 0)               \
    X(total_results,        LATER,  u64,        true, m->totals->results)                          \
    X(result_payload_bytes, LATER,  u64,        true, m->totals->result_payload_bytes)             \
    X(result_stored_bytes,  LATER,  u64,        true, m->totals->result_stored_bytes)              \
    X(kernels,              ALWAYS, list,       true, GBX_MANIFEST_KERNELS)                        \
    X(losses,               ALWAYS, list,       m->has_lists, GBX_MANIFEST_LOSSES)                 \
    X(skipped,              ALWAYS, list,       m->has_lists, GBX_MANIFEST_SKIPPED)                \
    X(finding_count,        LATER,  u64,        m->has_findings, m->totals->findings)              \
    X(findings,             LATER,  list,       m->has_lists && m->has_findings,                   \
                                                GBX_MANIFEST_FINDINGS)                             \
    X(results,              LATER,  list,       m->has_lists, GBX_MANIFEST_RESULTS)                \
    X(tensors,              ALWAYS, list,       m->has_lists, GBX_MANIFEST_TENSORS)

#define GBX_RUN_FIELDS(X)                                                                          \
    X(run_id,     ALWAYS, string, true, run->run_id)                                               \
    X(scene,      ALWAYS, string, true, run->scene)                                                \
    X(case,       ALWAYS, string, true, run->case_name)                                            \
    X(platform,   ALWAYS, string, true, run->platform)                                             \
    X(runtime,    ALWAYS, string, true, run->runtime)                                              \
    X(rank,       ALWAYS, i64,    true, run->rank)                                                 \
    X(round,      ALWAYS, i64,    true, run->round)                                                \
    X(started_at, ALWAYS, string, true, run->started_at)

#define GBX_BIN_FORMAT_TYPE "logical_contiguous"
#define GBX_BIN_FORMAT_BYTE_ORDER "little_endian"
#define GBX_BIN_FORMAT_FIELDS(X)                                                                   \
    X(type,       ALWAYS, word, true, GBX_BIN_FORMAT_TYPE)                                         \
    X(byte_order, ALWAYS, word, true, GBX_BIN_FORMAT_BYTE_ORDER)

/* `e` is a gbx_run_kernel. */
#define GBX_KERNEL_FIELDS(X)                                                                       \
    X(func_id,   ALWAYS, u64,    true, e->func_id)                                                 \
    X(name,      ALWAYS, string, true, e->name)                                                    \
    X(core_type, ALWAYS, string, true, e->core_type)                                               \
    X(signature, ALWAYS, strings, true, e->signature, e->signature_count)

/* `e` is a gbx_record_loss, `t` what is known of its task, `result` the argument of a lost RESULT. */
#define GBX_LOSS_FIELDS(X)                                                                         \
    X(task_id,   ALWAYS, hex_or_null,  true, t->has_record, t->id)                                 \
    X(task_seq,  ALWAYS, u64_or_null,  true, t->is_known, e->head.task)                            \
    X(arg_index, ALWAYS, u64_or_null,  true, e->head.arg_index != GBX_ARG_NONE, e->head.arg_index) \
    X(stage,     ALWAYS, word,         true, gbx_name_of(&gbx_stages, e->head.stage))              \
    X(cause,     ALWAYS, word,         true, gbx_name_of(&gbx_loss_causes, e->cause))              \
    X(count,     ALWAYS, u64,          true, e->count)                                             \
    X(result,    LATER,  u64_or_null,  true, result != GBX_ARG_NONE, result)                       \
    X(is_least,  LATER,  flag,         e->is_least, true)

/* `e` is a gbx_record_skipped, `t` what is known of its task. */
#define GBX_SKIPPED_FIELDS(X)                                                                      \
    X(task_id,     ALWAYS, hex_or_null, true, t->has_record, t->id)                                \
    X(task_seq,    ALWAYS, u64,         true, e->head.task)                                        \
    X(arg_index,   ALWAYS, u64_or_null, true, e->head.arg_index != GBX_ARG_NONE, e->head.arg_index)\
    X(kernel,      ALWAYS, quoted,      true, gbx_manifest_kernel_name(&m->names, e->func_id))     \
    X(reason,      NEVER,  word,        true, gbx_name_sentence(&gbx_skip_reasons,                 \
                                                                gbx_record_skip_reason(e)))        \
    X(reason_code, LATER,  word,        true, gbx_name_of(&gbx_skip_reasons,                       \
                                                          gbx_record_skip_reason(e)))

/* `e` is the gbx_record_tensor of a RESULT, `r` the gbx_result. */
#define GBX_RESULT_FIELDS(X)                                                                       \
    X(index,       ALWAYS, u64,         true, index)                                               \
    X(arg_index,   ALWAYS, u64,         true, r->arg_index)                                        \
    X(name,        ALWAYS, string,      true, r->name)                                             \
    X(role,        ALWAYS, word,        true, gbx_name_of(&gbx_roles, r->role))                    \
    X(dtype,       ALWAYS, word,        true, gbx_dtype_name(e->head.dtype))                       \
    X(shape,       ALWAYS, numbers,     true, gbx_record_shape(e), e->head.ndims)                  \
    X(numel,       ALWAYS, u64,         true, gbx_manifest_numel(gbx_record_shape(e), e->head.ndims))\
    X(buffer_addr, ALWAYS, hex_or_null, true, e->buffer_addr != 0, e->buffer_addr)                 \
    X(pieces,      ALWAYS, pieces,      true, r)                                                   \
    X(bin_offset,  ALWAYS, u64,         true, e->head.flags & GBX_FLAG_HAS_PAYLOAD ? e->bin_offset : 0)\
    X(bin_size,    ALWAYS, u64,         true, e->head.flags & GBX_FLAG_HAS_PAYLOAD ? e->bin_size : 0)\
    X(hash,        ALWAYS, hash,        e->head.flags & GBX_FLAG_HAS_HASH, e->hash_low, e->hash_high)\
    X(truncated,   ALWAYS, flag,        true, e->head.flags & GBX_FLAG_TRUNCATED)                  \
    X(in_flight,   ALWAYS, flag,        true, r->is_in_flight)                                     \
    X(stats,       ALWAYS, stats,       e->head.flags & GBX_FLAG_HAS_STATS,                        \
                                        e->head.dtype, gbx_record_statistics(e))

/* `e` is a gbx_record_piece. */
#define GBX_PIECE_FIELDS(X)                                                                        \
    X(offset,  ALWAYS, u64, true, e->offset)                                                       \
    X(address, ALWAYS, hex, true, e->address)                                                      \
    X(bytes,   ALWAYS, u64, true, e->bytes)

/* `e` is a gbx_run_finding, `text` its sentence. */
#define GBX_FINDING_FIELDS(X)                                                                      \
    X(kind,            ALWAYS, word,        true, gbx_name_of(&gbx_run_finding_kinds, e->kind))    \
    X(text,            NEVER,  string,      true, text)                                            \
    X(time_ns,         ALWAYS, u64,         true, e->time_ns)                                      \
    X(finder_seq,      ALWAYS, u64_or_null, true, e->finder != GBX_FINDING_NO_TASK, e->finder)     \
    X(place,           ALWAYS, word,        true, gbx_name_of(&gbx_run_finding_places, e->place))  \
    X(place_index,     ALWAYS, u64,         true, e->index)                                        \
    X(owner_seq,       ALWAYS, u64_or_null, true, e->owner_task != GBX_FINDING_NO_TASK,            \
                                                  e->owner_task)                                   \
    X(owner_func_id,   ALWAYS, u64_or_null, true, e->owner_func != GBX_FINDING_NO_KERNEL,          \
                                                  e->owner_func)                                   \
    X(owner_kernel,    ALWAYS, quoted,      true,                                                  \
                                            gbx_manifest_kernel_name(&m->names, e->owner_func))    \
    X(buffer_addr,     ALWAYS, hex,         true, e->address)                                      \
    X(buffer_bytes,    ALWAYS, u64,         true, e->bytes)                                        \
    X(first_byte,      ALWAYS, i64,         true, e->first)                                        \
    X(span_bytes,      ALWAYS, u64,         true, e->span)                                         \
    X(changed_bytes,   ALWAYS, u64,         true, e->changed)                                      \
    X(certainty,       ALWAYS, word,        true,                                                  \
                                            gbx_name_of(&gbx_run_finding_certainties, e->certainty))\
    X(candidate_count, ALWAYS, u64,         true, e->candidate_total)                              \
    X(candidates,      ALWAYS, candidates,  true, e)

/* `e` is a gbx_run_finding_task. */
#define GBX_CANDIDATE_FIELDS(X)                                                                    \
    X(task_seq,  ALWAYS, u64,         true, e->task)                                               \
    X(func_id,   ALWAYS, u64_or_null, true, e->func_id != GBX_FINDING_NO_KERNEL, e->func_id)       \
    X(kernel,    ALWAYS, quoted,      true, gbx_manifest_kernel_name(&m->names, e->func_id))       \
    X(arg_index, ALWAYS, u64_or_null, true, e->arg_index != GBX_FINDING_NO_ARGUMENT, e->arg_index)

/* `e` is a gbx_argument_entry; `t` the gbx_task_entry of its task, which may have no record;
 * is_tensor is a constant. */
#define GBX_TENSOR_FIELDS(X)                                                                       \
    X(index,         ALWAYS, RECORD, u64,         true, e->index)                                  \
    X(task_id,       ALWAYS, TASK,   hex_or_null, true, t->has_record, t->id)                      \
    X(task_seq,      ALWAYS, TASK,   u64,         true, t->number)                                 \
    X(func_id,       ALWAYS, TASK,   func_ids,    true, t->func_ids)                               \
    X(kernel,        ALWAYS, TASK,   kernels,     m->has_kernels, t->func_ids)                     \
    X(arg_index,     ALWAYS, RECORD, u64,         true, e->head->arg_index)                        \
    X(arg_name,      ALWAYS, RECORD, quoted,      t->slot_names[e->head->arg_index].size != 0,     \
                                                  t->slot_names[e->head->arg_index])               \
    X(role,          ALWAYS, FORM,   word,        true, gbx_name_of(&gbx_roles, e->role))          \
    X(stage,         ALWAYS, FORM,   word,        true, gbx_name_of(&gbx_stages, e->stage))        \
    X(kind,          ALWAYS, FORM,   word,        true, is_tensor ? "tensor" : "scalar")           \
    X(dtype,         ALWAYS, FORM,   word,        true, gbx_dtype_name(e->dtype))                  \
    X(value,         ALWAYS, RECORD, value,       !is_tensor && e->dtype != GBX_DTYPE_NONE,        \
                                                  e->dtype, e->bits)                               \
    X(bits,          ALWAYS, RECORD, hex,         !is_tensor, e->bits)                             \
    X(shape,         ALWAYS, RECORD, numbers,     true, e->shape, e->ndims)                        \
    X(strides,       ALWAYS, RECORD, numbers,     true, e->strides, e->ndims)                      \
    X(start_offset,  ALWAYS, RECORD, i64,         true, is_tensor ? e->tensor->start_offset : 0)   \
    X(numel,         ALWAYS, RECORD, u64,         true, e->numel)                                  \
    X(is_contiguous, ALWAYS, RECORD, flag,        true,                                            \
                                                  !is_tensor || e->flags & GBX_FLAG_CONTIGUOUS)    \
    X(buffer_addr,   ALWAYS, RECORD, hex,         is_tensor && m->known & GBX_KNOWN_ADDRESSES,     \
                                                  e->tensor->buffer_addr)                          \
    X(bin_offset,    ALWAYS, RECORD, u64,         true, e->has_payload ? e->tensor->bin_offset : 0)\
    X(bin_size,      ALWAYS, RECORD, u64,         true, e->has_payload ? e->tensor->bin_size : 0)  \
    X(hash,          ALWAYS, RECORD, hash,        is_tensor && e->flags & GBX_FLAG_HAS_HASH,       \
                                                  e->tensor->hash_low, e->tensor->hash_high)       \
    X(truncated,     ALWAYS, RECORD, flag,        true, e->flags & GBX_FLAG_TRUNCATED)             \
    X(overwritten,   ALWAYS, RECORD, flag,        true, e->flags & GBX_FLAG_OVERWRITTEN)           \
    X(in_flight,     ALWAYS, RECORD, flag,        true, e->flags & GBX_FLAG_IN_FLIGHT)             \
    X(time_ns,       ALWAYS, RECORD, u64,         m->known & GBX_KNOWN_TIMES, e->head->time_ns)    \
    X(thread,        ALWAYS, RECORD, u64,         m->known & GBX_KNOWN_TIMES, e->head->thread)     \
    X(block_num,     ALWAYS, TASK,   u64_or_null, m->known & GBX_KNOWN_SUBTASKS,                   \
                                                  t->has_record, t->block_num)                     \
    X(subtasks,      ALWAYS, TASK,   subtasks,    m->known & GBX_KNOWN_SUBTASKS, t->func_ids)      \
    X(start_ns,      LATER,  TASK,   u64_or_null, m->known & GBX_KNOWN_SPANS,                      \
                                                  t->span.has_start, t->span.start_ns)             \
    X(end_ns,        LATER,  TASK,   u64_or_null, m->known & GBX_KNOWN_SPANS,                      \
                                                  t->span.has_end, t->span.end_ns)                 \
    X(cores,         LATER,  TASK,   cores,       m->known & GBX_KNOWN_SPANS, &t->span)            \
    X(stats,         ALWAYS, RECORD, stats,       is_tensor && e->stats, e->dtype, e->stats)

/* `e` is a gbx_record_stats. */
#define GBX_STATS_FIELDS(X)                                                                        \
    X(min,       ALWAYS, extreme, true, dtype, e->min_bits)                                        \
    X(max,       ALWAYS, extreme, true, dtype, e->max_bits)                                        \
    X(mean,      ALWAYS, f64,     true, e->mean)                                                   \
    X(nan,       ALWAYS, u64,     true, e->nan_count)                                              \
    X(inf,       ALWAYS, u64,     true, e->inf_count)                                              \
    X(zero,      ALWAYS, u64,     true, e->zero_count)                                             \
    X(subnormal, ALWAYS, u64,     true, e->subnormal_count)

/* --- args_dump.json --- */

/* How the run ended and what is missing, in the files of --dump-args. */
#define GBX_ENDING_FIELDS(X)                                                                       \
    X(complete,         LATER,  flag,   true, gbx_reader_is_complete(m->reader))                   \
    X(status,           LATER,  string, true,                                                      \
                                        m->end ? gbx_reader_end_text(m->reader) : "killed")        \
    X(losses,           LATER,  list,   m->has_lists, GBX_MANIFEST_LOSSES)                         \
    X(skipped,          LATER,  list,   m->has_lists, GBX_MANIFEST_SKIPPED)

#define GBX_ARGS_HEAD_FIELDS(X)                                                                    \
    X(schema_version,   ALWAYS, u64,    true, 1)                                                   \
    X(run,              ALWAYS, run,    true, m->run)                                              \
    X(total_args,       ALWAYS, u64,    true, gbx_reader_list_count(m->reader, GBX_LIST_RUN_ARGS)) \
    GBX_ENDING_FIELDS(X)                                                                           \
    X(args,             ALWAYS, list,   m->has_lists, GBX_MANIFEST_ARGS)

/* `e` is a gbx_record_run_arg; `dtype` and `name` are its dtype and name. */
#define GBX_ARG_FIELDS(X)                                                                          \
    X(arg_index,    ALWAYS, u64,     true, e->head.arg_index)                                      \
    X(name,         ALWAYS, string,  true, name)                                                   \
    X(type,         ALWAYS, word,    true, e->is_tensor ? "tensor" : "scalar")                     \
    X(dtype,        ALWAYS, word,    true, gbx_dtype_name(dtype))                                  \
    X(ndims,        ALWAYS, u64,     true, e->is_tensor ? e->head.ndims : 0)                       \
    X(shape,        ALWAYS, numbers, true, gbx_record_run_arg_shape(e),                            \
                                           e->is_tensor ? e->head.ndims : 0)                       \
    X(data_ptr,     ALWAYS, hex,     e->is_tensor, e->bits)                                        \
    X(scalar_value, ALWAYS, value,   !e->is_tensor, GBX_UINT64, e->bits)                           \
    X(value,        ALWAYS, value,   !e->is_tensor && dtype != GBX_DTYPE_NONE, dtype, e->bits)     \
    X(bits,         ALWAYS, hex,     !e->is_tensor, e->bits)

/* --- kernel_args_dump.json --- */

#define GBX_DISPATCHES_HEAD_FIELDS(X)                                                              \
    X(schema_version,   ALWAYS, u64,    true, 1)                                                   \
    X(run,              ALWAYS, run,    true, m->run)                                              \
    X(total_dispatches, ALWAYS, u64,    true, m->totals->dispatches)                               \
    X(total_args,       ALWAYS, u64,    true, m->totals->dispatch_args)                            \
    GBX_ENDING_FIELDS(X)                                                                           \
    X(dispatches,       ALWAYS, list,   m->has_lists, GBX_MANIFEST_DISPATCHES)

/* `e` is a gbx_record_dispatch, `span` when it ran. */
#define GBX_DISPATCH_FIELDS(X)                                                                     \
    X(dispatch_id, ALWAYS, u64,      true, index)                                                  \
    X(task_id,     ALWAYS, hex,      true, e->task_id)                                             \
    X(task_seq,    ALWAYS, u64,      true, e->head.task)                                           \
    X(func_id,     ALWAYS, u64,      true, e->func_id)                                             \
    X(kernel,      ALWAYS, quoted,   true, gbx_manifest_kernel_name(&m->names, e->func_id))        \
    X(subtask_id,  ALWAYS, u64,      true, e->subtask)                                             \
    X(core_type,   ALWAYS, word,     true, e->subtask == GBX_SUBTASK_AIC ? "aic" : "aiv")          \
    X(core_id,     ALWAYS, u64,      true, e->core_id)                                             \
    X(block_idx,   ALWAYS, u64,      true, e->block_idx)                                           \
    X(block_num,   ALWAYS, u64,      true, e->block_num)                                           \
    X(stage,       ALWAYS, word,     true, "before_dispatch")                                      \
    X(time_ns,     ALWAYS, u64,      true, e->head.time_ns)                                        \
    X(start_ns,    LATER,  u64_or_null, true, span->has_start, span->start_ns)                     \
    X(end_ns,      LATER,  u64_or_null, true, span->has_end, span->end_ns)                         \
    X(args,        ALWAYS, slots,    true, e)                                                      \
    X(contexts,    ALWAYS, contexts, true, e)

/* `e` is a gbx_slot_view, whose dtype is beside it; ndims is 0 for a scalar or a word. */
#define GBX_SLOT_FIELDS(X)                                                                         \
    X(arg_index,    ALWAYS, u64,     true, e->slot->arg_index)                                     \
    X(kind,         ALWAYS, word,    true, gbx_name_of(&gbx_slot_kinds,                            \
                                                       gbx_record_slot_kind(e->slot)))             \
    X(role,         ALWAYS, word,    true, e->slot->is_word ? NULL                                 \
                                           : gbx_name_of(&gbx_roles, e->slot->role))               \
    X(dtype,        ALWAYS, word,    true, gbx_dtype_name(dtype))                                  \
    X(ndims,        ALWAYS, u64,     true, ndims)                                                  \
    X(shape,        ALWAYS, numbers, true, e->shape, ndims)                                        \
    X(strides,      ALWAYS, numbers, true, e->strides, ndims)                                      \
    X(start_offset, ALWAYS, i64,     true, e->start_offset)                                        \
    X(data_ptr,     ALWAYS, hex,     e->slot->is_tensor, e->data)                                  \
    X(value,        ALWAYS, value,   !e->slot->is_tensor && dtype != GBX_DTYPE_NONE,               \
                                     dtype, e->slot->bits)                                         \
    X(bits,         ALWAYS, hex,     true, e->slot->bits)

#define GBX_CONTEXT_FIELDS(X)                                                                      \
    X(arg_index, ALWAYS, u64,  true, arg_index)                                                    \
    X(name,      ALWAYS, word, true, name)                                                         \
    X(bits,      ALWAYS, hex,  true, bits)

/* --- more fields of other tools' manifests; only `import` reads them --- */

#define GBX_FOREIGN_HEAD_FIELDS(X)                                                                 \
    X(dump_args_level) X(total_args) X(input_args) X(output_args) X(inout_args) X(truncated_args)

#define GBX_FOREIGN_TENSOR_FIELDS(X)                                                               \
    X(arg_index_ambiguous) X(scalar_value) X(raw_shape) X(offsets)

/* Members of `results` that an entry of `tensors` does not have. */
#define GBX_RESULT_ONLY_FIELDS(X)                                                                  \
    X(name) X(pieces)

/* clang-format on */

#endif
