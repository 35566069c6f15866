// queue, explain, events, suspend, resume: why jobs wait, and making them wait.
#include <poll.h>
#include <unistd.h>

#include <map>

#include "api/forecast_wire.h"
#include "api/wire.h"
#include "cli/commands.h"
#include "cli/interrupts.h"
#include "cli/report.h"
#include "cli/waiting_view.h"

namespace muster::cli {

namespace {

base::Time now() {
  return base::SystemClock().now();
}

/// All jobs, or the one that is named.
Result<std::vector<job::Job>> jobs_of(Connection& connection,
                                      const std::optional<std::string>& name) {
  if (!name) return connection.call([](api::Client& client) { return client.list(); });
  MUSTER_TRY(job::Job job, connection.call([&](api::Client& client) { return client.get(*name); }));
  return std::vector<job::Job>{std::move(job)};
}

/// Tells apart the events that were shown from those that came since. A job's events only grow.
class NewEvents {
 public:
  std::vector<JobEvent> among(std::vector<job::Job> jobs) {
    for (job::Job& job : jobs) {
      size_t& seen = seen_[job.id];
      const size_t count = job.events.size();
      job.events.erase(job.events.begin(),
                       job.events.begin() + static_cast<std::ptrdiff_t>(std::min(seen, count)));
      seen = count;
    }
    return merged_events(jobs);
  }

 private:
  std::map<std::string, size_t> seen_;  ///< by id
};

/// Waits some time for Ctrl-C; returns whether it came.
bool interrupted_within(Interrupts& interrupts, std::chrono::milliseconds time) {
  pollfd entry{.fd = interrupts.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(time.count())) == 1;
}

/// Asks again and again: the server has no stream of all jobs' events.
Result<int> follow_events(const EventsCommand& command, Connection& connection) {
  constexpr std::chrono::milliseconds kInterval{500};
  Interrupts interrupts;
  NewEvents events;
  while (true) {
    MUSTER_TRY(const std::vector<job::Job> jobs, jobs_of(connection, command.name));
    std::string text;
    for (const JobEvent& event : events.among(jobs)) text += event_line(event);
    if (const auto shown = show(text); !shown) return kExitBrokenPipe;
    if (command.name && job::is_final(jobs.front().phase)) return kExitDone;
    if (interrupted_within(interrupts, kInterval)) return kExitInterrupted;
  }
}

using Act = Result<job::Job> (api::Client::*)(const std::string&);

/// Suspends or resumes every name, and says what came of each.
Result<int> act_on_jobs(const std::vector<std::string>& names, Output output, Act act,
                        const std::string& word, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  std::vector<job::Job> changed;
  std::string text;
  const int code = for_each_name(names, [&](const std::string& name) -> Result<void> {
    MUSTER_TRY(const job::Job job,
               connection.call([&](api::Client& client) { return (client.*act)(name); }));
    text += word + " " + job.spec.name + "\n";
    changed.push_back(job);
    return {};
  });
  MUSTER_CHECK(show(output, text, api::jobs_to_json(changed)));
  return code;
}

}  // namespace

Result<int> execute(const QueueCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<job::Job> jobs,
             connection.call([](api::Client& client) { return client.queue(); }));
  const std::string text =
      command.output == Output::kNames ? names_of(jobs) : queue_table(jobs, now());
  MUSTER_CHECK(show(command.output, text, api::jobs_to_json(jobs)));
  return kExitDone;
}

Result<int> execute(const ExplainCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const job::Explanation explanation,
             connection.call([&](api::Client& client) { return client.explain(command.name); }));
  MUSTER_CHECK(show(command.output, explanation_page(explanation, now()),
                    api::explanation_to_json(explanation)));
  return kExitDone;
}

Result<int> execute(const EventsCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  if (command.follow) return follow_events(command, connection);
  MUSTER_TRY(const std::vector<job::Job> jobs, jobs_of(connection, command.name));
  const std::vector<JobEvent> events = merged_events(jobs);
  MUSTER_CHECK(show(command.output, event_table(events), events_json(events)));
  return kExitDone;
}

Result<int> execute(const SuspendCommand& command, const Hooks& hooks) {
  return act_on_jobs(command.names, command.output, &api::Client::suspend, "suspended", hooks);
}

Result<int> execute(const ResumeCommand& command, const Hooks& hooks) {
  return act_on_jobs(command.names, command.output, &api::Client::resume, "resumed", hooks);
}

}  // namespace muster::cli
