// The gang of a job whose workers come and go while it runs, told from its tasks: who holds a seat,
// how many workers there are, and whether they fall over as fast as they are started.
//
// Pure.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "job/job.h"
#include "schedule/model.h"

namespace muster::control {

/// Whether the task has room: it was placed, and has not both left and ended.
bool holds_room(const job::Task& task);

/// Gives the task room there, or takes it away again.
void put(job::Task& task, const schedule::TaskPlace& place);
void unseat(job::Task& task);

/// The task that sits there; nullptr: nobody, or one that leaves.
job::Task* sitter_of(job::Job& job, int seat);

/// Workers that run and stay: those that the others are told of.
std::set<std::string> members_of(const job::Job& job);
int count_members(const job::Job& job);

/// "2 of 4 workers", of which `count` are there.
job::Workers workers_of(const job::Job& job, int count);

/// Whether this end of a task is none that its job can do with. Workers that a launcher reaches,
/// and parameter servers, do their part until they are told to stop; those that run the program
/// themselves may have come to its end before their leader, and an evaluator to its own.
bool is_loss(const job::Job& job, const job::Task& task);

/// A worker that was lost sooner after its start may have met what the next one meets, too.
inline constexpr std::chrono::seconds kSoon{60};

/// Of the workers in the order in which they were started, how many of the last were lost soon
/// (`lost_soon`: their names). One that has lived longer ends the row; one that was told to leave
/// says nothing.
int lost_soon_in_a_row(const job::Job& job, const std::set<std::string>& lost_soon, base::Time now);

/// Numbers the tasks that have room from 0 on, as the scheduler does where it knows a gang by these
/// alone; the others come behind.
void close_up_seats(job::Job& job);

}  // namespace muster::control
