/* Counting the records of a journal as they are read. */
#ifndef GBX_STORE_READER_TOTALS_H
#define GBX_STORE_READER_TOTALS_H

#include "store/reader.h"

/* `record` has been checked. */
void gbx_reader_totals_count(gbx_reader_totals *totals, const gbx_record *record);

#endif
