// The fields of a Job, of its Failure and of an Event, one row each (record/table.h): what the API
// tells of a job and what the store keeps of it. A fact is told as data and as its sentence, so the
// table stands with the sentences; the store keeps the data alone.
//
// A client that is older than its server takes the sentence of a fact that it does not know.
#pragma once

#include "job/job_table.h"

namespace muster::job {

const record::Table& table_of(const Job*);
const record::Table& table_of(const Failure*);
const record::Table& table_of(const Event*);

}  // namespace muster::job
