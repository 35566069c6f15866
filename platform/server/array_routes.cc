// /v1/arrays and below.

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "api/array_wire.h"
#include "api/job_query.h"
#include "api/routes.h"
#include "api/wire.h"
#include "http/server_sent_events.h"
#include "logs/log_follower.h"
#include "server/event_stream.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using access::Role;
using base::Result;
using control::Controller;

Result<job::Array> array_of_call(const Sight& sight, const ApiCall& call, Role needed) {
  return sight.array(call.path.at("name"), parameter(call.request, "project"), needed);
}

RouteAnswer array_answer(int status, const Sight& sight, job::Array array) {
  return json_answer(status, api::array_to_json(sight.shown(std::move(array))));
}

RouteAnswer list_arrays(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  std::optional<std::string> project;
  if (call.request.query.contains("project")) project = parameter(call.request, "project");
  if (project) MUSTER_CHECK(sight.project(*project, Role::kViewer));
  std::vector<job::Array> arrays;
  const auto seen = controller.arrays().ids_of([&](const control::ArrayFacts& array) {
    return (!project || array.record.spec.project == *project) && sight.sees(array);
  });
  for (const std::string& id : seen) {
    if (auto array = controller.arrays().with_id(id)) {
      arrays.push_back(sight.shown(*std::move(array)));
    }
  }
  return json_answer(200, api::arrays_to_json(arrays));
}

RouteAnswer get_array(const Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(job::Array array, array_of_call(sight, call, Role::kViewer));
  MUSTER_TRY(const bool with_lines, flag_parameter(call.request, api::kWithLines));
  if (with_lines) array.spec.array.lines = controller.arrays().lines_of(array.id);
  return array_answer(200, sight, std::move(array));
}

RouteAnswer remove_array(Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(const job::Array array, array_of_call(sight, call, Role::kMember));
  MUSTER_CHECK(controller.arrays().remove(array.id, call.actor()));
  return nothing_more();
}

using ArrayChange = Result<job::Array> (*)(control::Arrays& arrays, const std::string& id,
                                           const ApiCall& call);

RouteHandler changing_array(Controller& controller, ArrayChange change) {
  return at_once([&controller, change](const ApiCall& call) -> RouteAnswer {
    const Sight sight(controller, call.who);
    MUSTER_TRY(const job::Array array, array_of_call(sight, call, Role::kMember));
    MUSTER_TRY(job::Array changed, change(controller.arrays(), array.id, call));
    return array_answer(200, sight, std::move(changed));
  });
}

Result<job::Array> stop_array(control::Arrays& arrays, const std::string& id, const ApiCall& call) {
  MUSTER_TRY(const bool now, flag_parameter(call.request, "now"));
  return arrays.stop(id, now, call.actor());
}

Result<job::Array> rerun_members(control::Arrays& arrays, const std::string& id,
                                 const ApiCall& call) {
  MUSTER_TRY(const api::RerunRequest request, api::rerun_request_from_json(call.request.body));
  return arrays.rerun_failed(
      id, {.max_running = request.max_running, .max_failures = request.max_failures}, call.actor());
}

// The merged log of an array as server-sent events: "log" for each record, whose task names the
// member, "array" when the counts have changed, and last "end" with the array.
//
// Without `follow`, the members come one after another; with it, members that run at the same time
// are merged as they print, at most kMostReaders.
//
// On the EventLoop's thread.

class ArrayLogStream : public EventStream {
 public:
  ArrayLogStream(StreamLife life, Controller& controller, access::Identity who, std::string array,
                 job::LogQuery query)
      : EventStream(std::move(life)),
        controller_(controller),
        who_(std::move(who)),
        array_(std::move(array)),
        query_(std::move(query)),
        feed_watch_(controller.feed().watch([this] { wake(); })),
        kept_(controller.jobs().watch(array_, [] {})) {}

 protected:
  std::optional<http::BodyPiece> next() override {
    const auto array = controller_.arrays().facts_with_id(array_);
    const Sight sight(controller_, who_);
    if (is_over_ || !array || !sight.sees(*array)) return http::BodyPiece(std::nullopt);
    open_readers(*array);
    in_next_ = true;
    for (auto& [position, reader] : readers_) {
      if (!reader->is_pulled) begin_pull(*reader);
    }
    in_next_ = false;
    std::erase_if(readers_, [](const auto& entry) { return entry.second->has_ended; });
    std::string text = std::exchange(ready_, {});
    if (query_.follow && array->counts != counts_) {
      counts_ = array->counts;
      append_array(text, api::kArrayEvent, sight);
    }
    if (!text.empty()) return http::BodyPiece(std::move(text));
    const bool all_read = readers_.empty() && !more_to_open_;
    if (readers_.empty() && more_to_open_) wake();
    if (!all_read || (query_.follow && !array->ended)) return std::nullopt;
    is_over_ = true;
    append_array(text, api::kEndEvent, sight);
    return http::BodyPiece(std::move(text));
  }

 private:
  static constexpr size_t kMostReaders = 128;

  struct Reader {
    std::string title;  ///< "train[17]"
    bool is_single = true;
    std::unique_ptr<logs::LogFollower> follower;
    bool is_pulled = false;
    bool has_ended = false;
  };

  void append_array(std::string& text, std::string_view event, const Sight& sight) const {
    auto array = controller_.arrays().with_id(array_);
    if (array) {
      http::append_event(text, event, api::array_to_json(sight.shown(*std::move(array))));
    }
  }

  void open_readers(const control::ArrayFacts& array) {
    const size_t most = query_.follow ? kMostReaders : 1;
    more_to_open_ = false;
    if (readers_.size() >= most) {
      more_to_open_ = true;
      return;
    }
    bool is_gapless = true;
    for (const auto& member : controller_.arrays().jobs_of(array_, first_, 2 * kMostReaders)) {
      const bool is_read = read_.contains(member.job);
      if (is_read && is_gapless) first_ = member.position + 1;
      if (is_read) continue;
      is_gapless = false;
      const job::Job* const job = controller_.jobs().with_id(member.job);
      // A member that waits has printed nothing; it is looked at again when it has started.
      if (job->attempt == 0 && !job::is_final(job->phase)) continue;
      if (readers_.size() >= most) {
        more_to_open_ = true;
        break;
      }
      read_.insert(member.job);
      auto reader = std::make_unique<Reader>(
          Reader{.title = job::member_title(array.record.spec.name, member.index),
                 .is_single = job->tasks.size() == 1,
                 .follower = controller_.follow_logs(member.job, query_)});
      readers_[member.position] = std::move(reader);
    }
  }

  void begin_pull(Reader& reader) {
    reader.is_pulled = true;
    reader.follower->pull([this, &reader](const job::LogBatch& batch, bool end) {
      reader.is_pulled = false;
      reader.has_ended = end;
      for (job::LogRecord& record : job::records_of(batch)) {
        record.task = reader.is_single ? reader.title : reader.title + "/" + record.task;
        record.host.clear();
        http::append_event(ready_, api::kLogEvent, api::log_record_to_json(record));
      }
      if (!in_next_) wake();
    });
  }

  Controller& controller_;
  access::Identity who_;
  std::string array_;
  job::LogQuery query_;
  std::map<size_t, std::unique_ptr<Reader>> readers_;  ///< by position
  std::set<std::string> read_;                         ///< jobs whose logs were opened
  size_t first_ = 0;                                   ///< all members before it were read
  bool more_to_open_ = false;
  bool in_next_ = false;
  bool is_over_ = false;
  std::string ready_;
  job::MemberCounts counts_;
  std::shared_ptr<void> feed_watch_;
  std::shared_ptr<void> kept_;  ///< the rules of retention spare a watched array
};

RouteAnswer array_logs(base::EventLoop& loop, Controller& controller, const ApiCall& call) {
  const Sight sight(controller, call.who);
  MUSTER_TRY(const job::Array array, array_of_call(sight, call, Role::kViewer));
  MUSTER_TRY(job::LogQuery query, api::log_query_from_parameters(call.request.query));
  return event_answer(
      std::make_shared<ArrayLogStream>(StreamLife{.loop = loop, .still_valid = call.still_valid},
                                       controller, call.who, array.id, std::move(query)));
}

}  // namespace

void add_array_routes(Router& router, base::EventLoop& loop, Controller& controller) {
  const auto add = [&](const char* method, const char* path, RouteHandler handler) {
    router.add(method, path, Permission::kSignedIn, std::move(handler));
  };
  add("GET", "/v1/arrays",
      at_once([&controller](const ApiCall& call) { return list_arrays(controller, call); }));
  add("GET", "/v1/arrays/{name}",
      at_once([&controller](const ApiCall& call) { return get_array(controller, call); }));
  add("DELETE", "/v1/arrays/{name}",
      at_once([&controller](const ApiCall& call) { return remove_array(controller, call); }));
  add("POST", "/v1/arrays/{name}/stop", changing_array(controller, stop_array));
  add("POST", "/v1/arrays/{name}/suspend",
      changing_array(controller,
                     [](control::Arrays& arrays, const std::string& id, const ApiCall& call) {
                       return arrays.suspend(id, call.actor());
                     }));
  add("POST", "/v1/arrays/{name}/resume",
      changing_array(controller,
                     [](control::Arrays& arrays, const std::string& id, const ApiCall& call) {
                       return arrays.resume(id, call.actor());
                     }));
  add("POST", "/v1/arrays/{name}/rerun", changing_array(controller, rerun_members));
  add("GET", "/v1/arrays/{name}/logs", at_once([&loop, &controller](const ApiCall& call) {
        return array_logs(loop, controller, call);
      }));
}

}  // namespace muster::server
