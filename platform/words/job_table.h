// The fields of a Job and of other documents with facts, one row each (record/table.h). They are
// here and not in job/, because a fact is sent with its sentence (words/fact_rows.h).
#pragma once

#include "job/forecast.h"
#include "job/job.h"

namespace muster::job {

const record::Table& table_of(const Job*);
const record::Table& table_of(const Failure*);
const record::Table& table_of(const Event*);

const record::Table& table_of(const Forecast*);
const record::Table& table_of(const Placing*);
const record::Table& table_of(const ExpectedEviction*);
const record::Table& table_of(const Explanation*);

}  // namespace muster::job
