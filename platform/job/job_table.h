// The fields of what a Job is made of, one row each (record/table.h): what the API tells of it and
// what the store keeps. The rows of Job itself tell facts as sentences: words/job_table.h.
#pragma once

#include "job/job.h"
#include "job/spec_table.h"

namespace muster::job {

const record::Table& table_of(const Task*);
const record::Table& table_of(const ExitStatus*);
const record::Table& table_of(const LaunchFacts*);
const record::Table& table_of(const Progress*);

record::Words<Phase> words_of(const Phase*);
record::Words<Role> words_of(const Role*);
record::Words<TaskPhase> words_of(const TaskPhase*);

}  // namespace muster::job
