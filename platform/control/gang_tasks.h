// The tasks of one gang: which of them hold places, which take part, and whose end ends the job.
//
// A worker of a gang that resizes sits in a seat: its number in the gang as the scheduler counts. A
// worker that leaves keeps its place until it has ended, and its successor in the seat has another
// name.
//
// Pure.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "control/census.h"
#include "job/job.h"
#include "job/job_facts.h"
#include "schedule/model.h"

namespace muster::control {

void assign_place(job::Task& task, const schedule::TaskPlace& place);
/// Takes the place away; the task is Pending again.
void clear_place(job::Task& task);
schedule::TaskPlace place_of(const job::Task& task);

/// nullptr: the gang has no such task.
job::Task* find_task(job::Job& job, const std::string& name);
/// The task in the seat; nullptr: the seat is empty, or its task leaves.
job::Task* task_in_seat(job::Job& job, int seat);
std::vector<std::string> names_of_tasks(const job::Job& job);
/// Tasks that are Starting or Running.
std::vector<std::string> live_tasks(const job::Job& job);
/// The nodes of the tasks that were placed, each once, by name.
std::vector<std::string> nodes_of(const job::Job& job);

/// Whether the end of this task is the end of the job.
bool leads(const job::Job& job, const job::Task& task);
/// Whether the launcher starts and ends the programs of the workers.
bool is_reached_by_leader(const job::Job& job);

/// Workers that run and stay, by name: the members of which the other workers have a list.
std::set<std::string> members_of(const job::Job& job);
int count_members(const job::Job& job);
int count_placed_workers(const job::Job& job);
int least_workers(const job::JobSpec& spec);
/// "2 of 4 workers", where `count` is 2.
job::Workers workers_of(const job::Job& job, int count);

/// Whether the job lost this task, which has ended. Workers that a launcher reaches, and parameter
/// servers, run until they are stopped. Workers that run the program themselves may succeed before
/// their leader does, as may an evaluator.
bool is_loss(const job::Job& job, const job::Task& task);

// The tasks that decide how the job ends: its leader; of a job with Success::kAll also its workers.

/// Whether each of them has ended with success.
bool has_succeeded(const job::Job& job);
/// Whether each has ended without being stopped or lost.
bool has_ended_by_itself(const job::Job& job);

/// A worker that was lost within this time after its start may have failed for a reason that its
/// successor meets, too.
inline constexpr std::chrono::seconds kSoon{60};

/// How many of the workers that were started last were lost soon after their start, one after the
/// other (`lost_soon`: their names). A worker that lived longer ends the count. A worker that had
/// to leave is skipped.
int lost_soon_in_a_row(const job::Job& job, const std::set<std::string>& lost_soon, base::Time now);

/// Numbers the tasks that hold places from 0, as the scheduler does for a gang that consists of
/// these tasks only; the other tasks come after them.
void renumber_seats(job::Job& job);

job::Fact suspended_reason(const job::Job& job);
job::Fact starting_reason(const job::Job& job);
job::Failure failure_of(const job::Job& job, CensusFault fault);

}  // namespace muster::control
