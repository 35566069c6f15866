// What a muster-node says of its task. Where the folder is not shared, its records go into a copy
// here; where it is, the files are here already, and what is said is that there is more in them.
#include <chrono>
#include <utility>

#include "base/log.h"
#include "engine/engine_errors.h"
#include "engine/slurm/slurm_engine_impl.h"
#include "engine/task_folder_reading.h"

namespace muster::engine {

using slurm::NodeMessage;
using slurm::NodeNews;
using slurm::RecordNews;

namespace {

/// A disk that is full is looked at again.
constexpr std::chrono::seconds kKeepAgain{1};

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace

void SlurmEngine::Impl::heard(const GangPointer& gang, const TaskPointer& task,
                              NodeMessage message) {
  const auto* const news = std::get_if<NodeNews>(&message);
  if (news == nullptr) return;                       // orders are for the other end
  std::visit(Overloaded{[](const slurm::Hello&) {},  // the first message, and heeded
                        [&](const slurm::StartAnswer& answer) {
                          if (answer.error) return start_answered(task, answer.error);
                          came_up(gang, task);
                        },
                        [&](const slurm::ChangeAnswer& answer) {
                          const auto asked = task->changes.extract(answer.number);
                          if (asked.empty()) return;
                          soon([done = asked.mapped(), error = answer.error] {
                            done(error ? Result<void>(*error) : Result<void>{});
                          });
                        },
                        [&](const slurm::AnsweredNews&) { answers(gang, task); },
                        [&](const slurm::EndedNews& news_of_end) {
                          if (!task->up)
                            came_up(gang, task);  // a program may be over before that is said
                          ended(gang, task, news_of_end.end);
                        },
                        [&](const slurm::GrownNews& grown) {
                          if (grown.log) log_has_grown(task);
                          if (grown.ranks) report(gang->gang, task->name, RanksChanged{});
                        },
                        [&](const RecordNews& record) { heard(gang, task, record); },
                        [&](const slurm::SignalledNews& signalled) {
                          if (!task->was_told_to_stop) task->signal = signalled.signal;
                          poll_soon();
                        },
                        [&](const slurm::StreamRefused& refused) {
                          const auto waiting = streams.extract(refused.stream);
                          if (!waiting.empty()) waiting.mapped()(refused.error);
                        }},
             *news);
}

/// Where the disk is full it is kept when there is room again, and nothing that follows is read
/// before: its muster-node has more room, and who is told of an end has the whole log.
void SlurmEngine::Impl::heard(const GangPointer& gang, const TaskPointer& task,
                              const RecordNews& news) {
  if (!task->mirror) return;
  const auto taken = task->mirror->take(news.record);
  const bool is_later = !taken && taken.error().code == base::ErrorCode::kExhausted;
  const bool is_known = task->timer && !task->end;  // it waits for room already
  if (!taken && !is_known) {
    base::log_error("task " + task->name + " of job " + gang->gang.job_id + ": " +
                    taken.error().what + (is_later ? "; it is tried until there is room" : ""));
  }
  if (is_later && task->line != nullptr) {
    task->line->pause(true);
    task->timer = loop.after(
        kKeepAgain, [this, weak_gang = std::weak_ptr(gang), weak = std::weak_ptr(task), news] {
          const auto its_gang = weak_gang.lock();
          const auto still = weak.lock();
          const RecordNews again = news;  // the timer goes with what it holds
          if (its_gang && still) heard(its_gang, still, again);
        });
    return;
  }
  if (is_known) {
    task->timer.reset();
    if (task->line != nullptr) task->line->pause(false);
  }
  switch (news.record.kind) {
    case FollowKind::kLog:
    case FollowKind::kLogStart:
      return log_has_grown(task);
    case FollowKind::kRank:
      return report(gang->gang, task->name, RanksChanged{});
    default:
      return;  // what it says of the task itself comes as a message of its own
  }
}

/// It is told anew after each break of the connection.
void SlurmEngine::Impl::came_up(const GangPointer& gang, const TaskPointer& task) {
  if (task->start) return start_answered(task, std::nullopt);
  task->up = gang->seat_of(*task).started;
}

void SlurmEngine::Impl::answers(const GangPointer& gang, const TaskPointer& task) {
  task->answered = true;
  if (task->start || std::exchange(task->is_announced, true)) return;
  report(gang->gang, task->name, TaskAnswered{});
}

void SlurmEngine::Impl::log_has_grown(const TaskPointer& task) {
  std::erase_if(task->log_watchers, [](const auto& watcher) { return watcher.expired(); });
  const auto watchers = task->log_watchers;
  for (const auto& watcher : watchers) {
    const auto grown = watcher.lock();
    if (grown)
      soon([weak = std::weak_ptr(grown)] {
        if (const auto still = weak.lock()) (*still)();
      });
  }
}

}  // namespace muster::engine
