// notify: subscriptions to the ends of jobs, and deliveries that failed.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "base/text.h"
#include "cli/command/command.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "cli/common/typed_input.h"
#include "cli/connection/connection.h"
#include "cli/projects/projects.h"
#include "record/input.h"

namespace muster::cli::projects {

namespace {

using job::Happening;

std::vector<Happening> read_happenings(Reading& in) {
  if (!in.reader.has("--on")) {
    return {Happening::kSucceeded, Happening::kFailed, Happening::kStopped};
  }
  std::vector<Happening> happenings;
  for (const std::string& text : in.reader.texts("--on")) {
    for (const std::string& word : base::split(text, ',')) {
      const auto happening = job::happening_of(word);
      if (word == "all") {
        happenings = job::all_happenings();
      } else if (!happening) {
        in.reader.fault("--on", record::not_a_choice(word, {"started", "requeued", "succeeded",
                                                            "failed", "stopped", "all"}));
      } else if (std::find(happenings.begin(), happenings.end(), *happening) == happenings.end()) {
        happenings.push_back(*happening);
      }
    }
  }
  return happenings;
}

Call read_notify_add(Reading& in) {
  NotifyAddCommand command{.project = in.project_meant(), .request = {}, .output = in.output()};
  if (in.arguments.names.empty()) {
    in.reader.fault("URL", "is missing; give an address, such as https://hooks.example.com/muster");
  } else {
    command.request.url = in.arguments.names.front();
  }
  command.request.on = read_happenings(in);
  command.request.job = in.reader.text("--job");
  for (const std::string& label : in.reader.texts("--label")) {
    const size_t equals = std::min(label.find('='), label.size());
    command.request.labels[label.substr(0, equals)] =
        equals == label.size() ? "" : label.substr(equals + 1);
  }
  command.request.with_lines = in.reader.has("--with-lines");
  command.request.members = in.reader.has("--members");
  return command;
}

std::string read_id(Reading& in) {
  if (!in.arguments.names.empty()) return in.arguments.names.front();
  in.reader.fault("ID", "is missing; list the subscriptions with: muster notify list");
  return {};
}

Call read_notify_remove(Reading& in) {
  [[maybe_unused]] const std::string first = read_id(in);
  return NotifyRemoveCommand{.project = in.project_meant(),
                             .ids = in.arguments.names,
                             .ignore_missing = in.reader.has("--ignore-missing")};
}

Call read_notify_retry(Reading& in) {
  const bool all = in.reader.has("--all");
  if (all == !in.arguments.names.empty()) {
    in.reader.fault(
        all ? "--all" : "ID",
        all ? "cannot be used with IDs"
            : "is missing; list the notifications with 'muster notify dead', or give --all");
  }
  return NotifyRetryCommand{.project = in.project_meant(), .ids = in.arguments.names};
}

Call read_notify_list(Reading& in) {
  return NotifyListCommand{.project = in.project_meant(), .output = in.list_output()};
}

Call read_notify_rotate(Reading& in) {
  return NotifyRotateCommand{
      .project = in.project_meant(), .id = read_id(in), .output = in.output()};
}

Call read_notify_test(Reading& in) {
  return NotifyTestCommand{.project = in.project_meant(), .id = read_id(in), .output = in.output()};
}

Call read_notify_dead(Reading& in) {
  return NotifyDeadCommand{.project = in.project_meant(), .output = in.list_output()};
}

Flags notify_project_flag() {
  return {{.name = "--project",
           .value = "PROJECT",
           .help = "project of the jobs (default: the project in use)",
           .offer = Offer::kProjects}};
}

Positionals one_id() {
  return {.name = "ID", .least = 1, .most = 1};
}

Command notify_add() {
  return {
      .name = "add",
      .help =
          "send a signed HTTP request to an address when jobs start or end; prints the signing key",
      .read = read_notify_add,
      .positionals = {.name = "URL", .least = 1, .most = 1},
      .flags = notify_project_flag() +
               Flags{{.name = "--on",
                      .value = "WHAT,...",
                      .help = "events: started, requeued, succeeded, failed, stopped, or all "
                              "(default: succeeded,failed,stopped)",
                      .repeats = true},
                     {.name = "--job",
                      .value = "PATTERN",
                      .help = "only jobs whose name matches this pattern, such as 'train-*'"},
                     {.name = "--label",
                      .letter = "-l",
                      .value = "NAME[=VALUE]",
                      .help = "only jobs with this label",
                      .repeats = true},
                     {.name = "--members",
                      .help = "also for each member of an array and each trial of a sweep, not "
                              "only for the end of the whole"},
                     {.name = "--with-lines",
                      .help = "also send the last lines of a failed job; they may contain "
                              "confidential data"}} +
               output_flag(),
      .example = "muster notify add https://hooks.example.com/muster --on failed"};
}

}  // namespace

Command notify_command() {
  return {
      .name = "notify",
      .help =
          "notify addresses when jobs start and end: add, list, remove, rotate, test, dead, retry",
      .commands = {
          notify_add(),
          {.name = "list",
           .alias = "ls",
           .help = "list subscriptions",
           .read = read_notify_list,
           .flags = notify_project_flag() + list_output_flag(),
           .example = "muster notify list --project team-a"},
          {.name = "remove",
           .alias = "rm",
           .help = "stop notifying an address",
           .read = read_notify_remove,
           .positionals = {.name = "ID", .least = 1, .most = some_of(Offer::kNothing).most},
           .flags = notify_project_flag() +
                    Flags{{.name = "--ignore-missing",
                           .help = "do not fail if the subscription does not exist"}},
           .example = "muster notify remove 3f6hq2c7vexn"},
          {.name = "rotate",
           .help = "replace the signing key of a subscription",
           .read = read_notify_rotate,
           .positionals = one_id(),
           .flags = notify_project_flag() + output_flag(),
           .example = "muster notify rotate 3f6hq2c7vexn"},
          {.name = "test",
           .help = "send a test request now and show the answer",
           .read = read_notify_test,
           .positionals = one_id(),
           .flags = notify_project_flag() + output_flag(),
           .example = "muster notify test 3f6hq2c7vexn"},
          {.name = "dead",
           .help = "list notifications that could not be delivered, with the error and the time",
           .read = read_notify_dead,
           .flags = notify_project_flag() + list_output_flag(),
           .example = "muster notify dead"},
          {.name = "retry",
           .help = "deliver undelivered notifications again",
           .read = read_notify_retry,
           .positionals = {.name = "ID", .least = 0, .most = some_of(Offer::kNothing).most},
           .flags = notify_project_flag() +
                    Flags{{.name = "--all", .help = "all undelivered notifications"}},
           .example = "muster notify retry --all"},
      }};
}

namespace {

using job::Delivery;
using job::Subscription;

constexpr size_t kMostUrlBytes = 4 << 10;

std::string what_of(const Subscription& subscription) {
  std::string text;
  for (const job::Happening happening : subscription.on) {
    text += (text.empty() ? "" : ",") + std::string(job::to_string(happening));
  }
  return text;
}

/// "train-* team=vision", or "all".
std::string job_filter_words(const Subscription& subscription) {
  std::string text = subscription.job;
  for (const auto& [name, value] : subscription.labels) {
    text += (text.empty() ? "" : " ") + name + (value.empty() ? "" : "=" + value);
  }
  if (text.empty()) text = "all";
  return subscription.members ? text + ", members" : text;
}

std::string table_of(const std::vector<Subscription>& subscriptions) {
  Table table({{"ID"}, {"ON"}, {"JOBS"}, {"LINES"}, {"URL"}, {"BY"}, {"STATE"}});
  for (const Subscription& each : subscriptions) {
    table.add({each.id, what_of(each), job_filter_words(each), each.with_lines ? "yes" : "no",
               each.url, each.created_by,
               each.gone ? "removed by the receiver " + moment_words(*each.gone) : "active"});
  }
  return table.to_string();
}

std::string table_of(const std::vector<Delivery>& letters) {
  Table table({{"ID"}, {"SUBSCRIPTION"}, {"EVENT"}, {"JOB"}, {"SINCE"}, {"TRIES", true}, {"WHY"}});
  for (const Delivery& each : letters) {
    table.add({each.id, each.subscription,
               (each.object.empty() ? "" : each.object + " ") +
                   std::string(job::to_string(each.happening)),
               each.job, each.dead ? moment_words(*each.dead) : "-", std::to_string(each.attempts),
               each.fault});
  }
  return table.to_string();
}

template <class Value>
std::string ids_of(const std::vector<Value>& values) {
  std::string text;
  for (const Value& value : values) text += value.id + "\n";
  return text;
}

Result<int> show_keyed(const api::KeyedSubscription& keyed, Output output) {
  const std::string text = fields({{"ID", keyed.subscription.id}, {"KEY", keyed.key}});
  MUSTER_CHECK(show(output, text, api::keyed_subscription_to_json(keyed)));
  if (output == Output::kTable)
    std::cerr << "the key is shown only once: give it to the receiver now\n";
  return kExitDone;
}

std::string words_on(const api::PingResult& result) {
  const std::string took = " after " + std::to_string(result.took.count()) + " ms";
  if (result.arrived) return "delivered: answer " + std::to_string(result.status) + took + "\n";
  std::string text = "not delivered: " + result.fault + took + "\n";
  if (!result.advice.empty()) text += "  " + result.advice + "\n";
  return text;
}

}  // namespace

Result<int> execute(const NotifyAddCommand& command, const Hooks& hooks) {
  api::SubscriptionRequest request = command.request;
  if (request.url == "-") {
    MUSTER_TRY(std::string text, read_to_end(STDIN_FILENO, kMostUrlBytes));
    request.url = without_last_newline(std::move(text));
  }
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const api::KeyedSubscription added,
             connection.call_once(
                 [&](api::Client& client) { return client.subscribe(command.project, request); },
                 "the subscription may have been added; before you try again, list the "
                 "subscriptions: muster notify list --project " +
                     command.project));
  return show_keyed(added, command.output);
}

Result<int> execute(const NotifyListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<Subscription> found, connection.call([&](api::Client& client) {
    return client.subscriptions(command.project);
  }));
  MUSTER_CHECK(show(command.output,
                    command.output == Output::kNames ? ids_of(found) : table_of(found),
                    api::subscriptions_to_json(found)));
  return kExitDone;
}

Result<int> execute(const NotifyRemoveCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  return delete_each(command.ids, command.ignore_missing, [&](const std::string& id) {
    return connection.client().unsubscribe(command.project, id);
  });
}

Result<int> execute(const NotifyRotateCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const api::KeyedSubscription rotated, connection.call([&](api::Client& client) {
    return client.rotate_subscription(command.project, command.id);
  }));
  return show_keyed(rotated, command.output);
}

Result<int> execute(const NotifyTestCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const api::PingResult result, connection.call([&](api::Client& client) {
    return client.ping_subscription(command.project, command.id);
  }));
  MUSTER_CHECK(show(command.output, words_on(result), api::ping_result_to_json(result)));
  return result.arrived ? kExitDone : kExitFailed;
}

Result<int> execute(const NotifyDeadCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<Delivery> letters, connection.call([&](api::Client& client) {
    return client.dead_letters(command.project);
  }));
  MUSTER_CHECK(show(command.output,
                    command.output == Output::kNames ? ids_of(letters) : table_of(letters),
                    api::dead_letters_to_json(letters)));
  return kExitDone;
}

Result<int> execute(const NotifyRetryCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const int count,
             connection.call_once(
                 [&](api::Client& client) {
                   return client.retry_dead_letters(command.project, command.ids);
                 },
                 "the deliveries may be tried again; list the failed ones: muster notify dead "
                 "--project " +
                     command.project));
  MUSTER_CHECK(show("tries " + base::count_text(count, "dead letter") + " again\n"));
  return kExitDone;
}

}  // namespace muster::cli::projects
