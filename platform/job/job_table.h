// The fields of a Job and of the types within it, one row each (record/table.h): what the API tells
// of a job and what the store keeps of it.
#pragma once

#include "job/job.h"
#include "job/spec_table.h"

namespace muster::job {

const record::Table& table_of(const Job*);
const record::Table& table_of(const Task*);
const record::Table& table_of(const ExitStatus*);
const record::Table& table_of(const Failure*);
const record::Table& table_of(const LaunchFacts*);
const record::Table& table_of(const Progress*);
const record::Table& table_of(const Event*);

record::Words<Phase> words_of(const Phase*);
record::Words<Role> words_of(const Role*);
record::Words<TaskPhase> words_of(const TaskPhase*);

}  // namespace muster::job
