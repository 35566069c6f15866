// notify: who is told when jobs begin and end, and what did not arrive.
#include <unistd.h>

#include <iostream>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/fields.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/time_words.h"
#include "cli/typed_input.h"

namespace muster::cli {

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
  return text.empty() ? "all" : text;
}

std::string table_of(const std::vector<Subscription>& subscriptions) {
  Table table({{"ID"}, {"ON"}, {"JOBS"}, {"LINES"}, {"URL"}, {"BY"}, {"STATE"}});
  for (const Subscription& each : subscriptions) {
    table.add({each.id, what_of(each), job_filter_words(each), each.with_lines ? "yes" : "no",
               each.url, each.created_by,
               each.gone ? "gone since " + moment_words(*each.gone) : "told"});
  }
  return table.to_string();
}

std::string table_of(const std::vector<Delivery>& letters) {
  Table table({{"ID"}, {"SUBSCRIPTION"}, {"EVENT"}, {"JOB"}, {"SINCE"}, {"TRIES", true}, {"WHY"}});
  for (const Delivery& each : letters) {
    table.add({each.id, each.subscription, std::string(job::to_string(each.happening)), each.job,
               each.dead ? moment_words(*each.dead) : "-", std::to_string(each.attempts),
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
    std::cerr << "the key is not shown again: give it to the receiver now\n";
  return kExitDone;
}

std::string words_on(const api::PingResult& result) {
  const std::string took = " after " + std::to_string(result.took.count()) + " ms";
  if (result.arrived) return "it arrived: answered " + std::to_string(result.status) + took + "\n";
  std::string text = "it did not arrive: " + result.fault + took + "\n";
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
  MUSTER_TRY(const api::KeyedSubscription added, connection.call([&](api::Client& client) {
    return client.subscribe(command.project, request);
  }));
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
  MUSTER_TRY(const int count, connection.call([&](api::Client& client) {
    return client.retry_dead_letters(command.project, command.ids);
  }));
  MUSTER_CHECK(show("tries " + base::count_text(count, "dead letter") + " again\n"));
  return kExitDone;
}

}  // namespace muster::cli
