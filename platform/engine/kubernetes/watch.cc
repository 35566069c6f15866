#include "engine/kubernetes/watch.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "engine/kubernetes/api_paths.h"
#include "engine/kubernetes/api_session.h"
#include "engine/kubernetes/json_lines.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

/// The annotation of the bookmark that ends a list over the watch.
constexpr const char* kListEnds = "k8s.io/initial-events-end";
/// A watch that ends sooner, without an event, is not repeated at once.
constexpr std::chrono::seconds kShortWatch{1};

struct Metadata {
  ObjectKey key;
  std::string version;  ///< resourceVersion
  bool ends_list = false;
};

std::string metadata_text(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// nullopt: the object has no metadata.
std::optional<Metadata> metadata_of(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find("metadata");
  if (found == object.end() || !found->is_object()) return std::nullopt;
  Metadata metadata{.key = {.space = metadata_text(*found, "namespace"),
                            .name = metadata_text(*found, "name"),
                            .uid = metadata_text(*found, "uid")},
                    .version = metadata_text(*found, "resourceVersion")};
  const auto annotations = found->find("annotations");
  metadata.ends_list = annotations != found->end() && annotations->is_object() &&
                       metadata_text(*annotations, kListEnds) == "true";
  return metadata;
}

}  // namespace

struct Watch::State : std::enable_shared_from_this<State> {
  State(ApiClient& its_client, Selection its_which, WatchHandlers its_handlers,
        WatchOptions its_options)
      : client(its_client),
        session(its_client.session()),
        which(std::move(its_which)),
        doing("cannot watch " + described(which)),
        handlers(std::move(its_handlers)),
        options(its_options),
        streams_list(options.streams_list),
        backoff(options.first_pause, options.longest_pause),
        lines(options.most_bytes) {}

  /// The part of an error that distinguishes outages.
  struct OutageKind {
    ErrorCode code = ErrorCode::kInternal;
    std::string reason_code;

    bool operator==(const OutageKind&) const = default;
  };

  static OutageKind kind_of(const Error& error) {
    const ApiRefusal* refusal = refusal_of(error);
    return {.code = error.code, .reason_code = refusal == nullptr ? "" : refusal->reason_code};
  }

  struct Known {
    std::string uid;
    std::string version;
    uint64_t list = 0;  ///< the number of the list in which it was last seen
  };
  using Place = std::pair<std::string, std::string>;  ///< namespace and name

  // --- the list

  /// Lists everything, over the watch if possible, and continues watching.
  void list() {
    call.reset();
    list_timer.reset();
    version.clear();
    ++list_number;
    if (streams_list) return watch(true);
    const auto on_page = [this](const Json& items, bool is_first) {
      const auto self = shared_from_this();
      if (is_first) ++list_number;
      for (const Json& item : items) {
        if (!take_object(item)) return;
      }
    };
    call = client.list_pages(which, on_page, [this](Result<std::string> at) {
      const auto self = shared_from_this();
      if (!at) return failed(std::move(at).error());
      version = *std::move(at);
      if (end_list()) watch(false);
    });
  }

  /// Everything that was not in the list is gone. False: the watch was dropped.
  bool end_list() {
    std::vector<std::pair<Place, Known>> gone;
    for (const auto& [place, known] : objects) {
      if (known.list != list_number) gone.emplace_back(place, known);
    }
    for (const auto& [place, known] : gone) {
      objects.erase(place);
      if (!report_gone(place, known.uid, nullptr)) return false;
    }
    is_synced = true;
    return recovered() && (!handlers.on_synced || call_handler([this] { handlers.on_synced(); }));
  }

  // --- the watch

  void watch(bool with_list) {
    is_listing = with_list;
    lines = JsonLines(options.most_bytes);
    has_received_events = false;
    started = steady_clock::now();
    http::Query query{{"watch", "true"},
                      {"allowWatchBookmarks", "true"},
                      {"timeoutSeconds", std::to_string(options.length.count() + jitter())}};
    if (!which.labels.empty()) query["labelSelector"] = which.labels;
    if (!which.fields.empty()) query["fieldSelector"] = which.fields;
    if (with_list) {
      query["sendInitialEvents"] = "true";
      query["resourceVersionMatch"] = "NotOlderThan";
      expect_list();
    } else {
      query["resourceVersion"] = version;
    }
    call = session->ask({.verb = "watch",
                         .resource = std::string(which.resource.plural),
                         .doing = doing,
                         .target = target_of(which.resource, which.space, "", query),
                         .repeats = false,
                         .is_long = true,
                         .limits = http::AsyncLimits{.connect = session->options().connect,
                                                     .answer = session->options().answer,
                                                     .silence = options.silence},
                         .on_piece = [this](std::string_view bytes) { return take(bytes); },
                         .on_head = [this] { opened(); }},
                        [this](const Result<http::Response>& answer) { ended(answer); });
  }

  /// Spreads the ends of many watches.
  int64_t jitter() const {
    const int64_t spread = options.length.count() / 4;
    return spread * base::SystemRandom().bytes<1>()[0] / 255;
  }

  /// An API server that ignores the request for a list over the watch sends no end of the list.
  void expect_list() {
    list_timer = session->loop().after(options.list_silence, [this] { list_in_pages(); });
  }

  void list_in_pages() {
    const auto self = shared_from_this();
    list_timer.reset();
    streams_list = false;
    list();
  }

  /// The API server may still end the watch at once, or with an error.
  void opened() {
    if (is_listing) return;
    timer = session->loop().after(kShortWatch, [this] {
      const auto self = shared_from_this();
      recovered();
    });
  }

  bool take(std::string_view bytes) {
    const auto self = shared_from_this();
    return lines.put(bytes, [this](std::string_view line) { return take_event(line); }) &&
           !is_dropped;
  }

  /// False: the watch is over.
  bool take_event(std::string_view line) {
    const Json event = base::parse_json(line);
    const auto object = event.is_object() ? event.find("object") : event.end();
    if (!event.is_object() || object == event.end()) return stop_for(malformed());
    const std::string type = metadata_text(event, "type");
    if (type == "ERROR") return take_error(*object);
    const auto metadata = metadata_of(*object);
    if (!metadata) return stop_for(malformed());
    has_received_events = true;
    if (list_timer) expect_list();
    if (type == "BOOKMARK") return take_bookmark(*metadata);
    if (type == "ADDED" || type == "MODIFIED") {
      if (!take_object(*object)) return false;
    } else if (type == "DELETED") {
      if (!take_deleted(*metadata, *object)) return false;
    }
    if (is_listing) return true;
    version = metadata->version;
    return recovered();
  }

  bool take_bookmark(const Metadata& metadata) {
    // Within a list, a position does not cover the objects that are still to come.
    if (is_listing && !metadata.ends_list) return true;
    version = metadata.version;
    if (!is_listing) return recovered();
    is_listing = false;
    list_timer.reset();
    return end_list();
  }

  /// An event ERROR: the position is outdated, or the API server cannot continue.
  bool take_error(const Json& status) {
    const ApiRefusal refusal = read_refusal(status, 0);
    if (refusal.status == 410) {
      version.clear();
    } else if (is_listing) {
      // Some storages cannot send a list over the watch.
      streams_list = false;
    }
    return stop_for(error_of(refusal, doing, session->name()));
  }

  /// Keeps the reason for ended(), which is called next.
  bool stop_for(Error error) {
    stop_reason = std::move(error);
    return false;
  }

  Error malformed() const {
    return {.code = ErrorCode::kInternal,
            .what = doing + ": " + session->name() + " sent an event that cannot be parsed"};
  }

  /// The request is over: by its time limit, by a cut, or by an error.
  void ended(const Result<http::Response>& answer) {
    const auto self = shared_from_this();
    list_timer.reset();
    if (lines.is_too_long()) {
      stop_reason = Error{.code = ErrorCode::kExhausted,
                          .what = doing + ": an object is larger than " +
                                  std::to_string(options.most_bytes) + " bytes"};
    }
    if (auto reason = std::exchange(stop_reason, std::nullopt)) return failed(*std::move(reason));
    if (!answer) return failed(answer.error());
    // An orderly end, by the time limit that was asked for.
    const bool was_short =
        !has_received_events && steady_clock::now() - started <
                                    std::min<steady_clock::duration>(kShortWatch, options.length);
    if (was_short || is_listing) {
      return failed({.code = ErrorCode::kUnavailable,
                     .what = doing + ": " + session->name() + " ended the watch at once"});
    }
    go_on();
  }

  void go_on() { version.empty() ? list() : watch(false); }

  void failed(Error error) {
    const ApiRefusal* refusal = refusal_of(error);
    const bool is_outdated_position = refusal != nullptr && refusal->status == 410;
    if (is_outdated_position) version.clear();
    // 400 and 422: this API server does not support the parameters.
    const bool cannot_list =
        refusal != nullptr && is_listing && (refusal->status == 400 || refusal->status == 422);
    if (cannot_list) streams_list = false;
    is_listing = false;
    const bool is_first = backoff.count() == 0;
    if (is_first && (cannot_list || (is_outdated_position && is_synced))) {
      backoff.next();
      return retry_after(milliseconds(0));
    }
    // A watch that was cut usually continues at once, and is not an outage then.
    const bool is_cut = is_first && is_synced && error.code == ErrorCode::kUnavailable;
    milliseconds pause = backoff.next();
    if (refusal != nullptr && refusal->retry_after) {
      pause = std::max<milliseconds>(pause, *refusal->retry_after);
    }
    if (!is_cut && !report_outdated(error)) return;
    retry_after(pause);
  }

  void retry_after(milliseconds pause) {
    call.reset();
    timer = session->loop().after(pause, [this] {
      const auto self = shared_from_this();
      go_on();
    });
  }

  // --- objects

  /// False: the watch was dropped.
  bool take_object(const Json& object) {
    const auto metadata = metadata_of(object);
    if (!metadata) return true;
    Place place{metadata->key.space, metadata->key.name};
    const auto found = objects.find(place);
    if (found != objects.end() && found->second.uid != metadata->key.uid) {
      const std::string old = found->second.uid;
      objects.erase(found);
      if (!report_gone(place, old, nullptr)) return false;
    }
    Known& known = objects[place];
    known.list = list_number;
    if (known.uid == metadata->key.uid && known.version == metadata->version) return true;
    known.uid = metadata->key.uid;
    known.version = metadata->version;
    return call_handler([&] { handlers.on_object(object); });
  }

  bool take_deleted(const Metadata& metadata, const Json& object) {
    const Place place{metadata.key.space, metadata.key.name};
    const auto found = objects.find(place);
    if (found == objects.end() || found->second.uid != metadata.key.uid) return true;
    objects.erase(found);
    return report_gone(place, metadata.key.uid, &object);
  }

  // --- the handlers, each of which may drop the watch

  template <class Action>
  bool call_handler(const Action& action) {
    if (is_dropped) return false;
    action();
    return !is_dropped;
  }

  bool report_gone(const Place& place, const std::string& uid, const Json* last) {
    return call_handler(
        [&] { handlers.on_gone({.space = place.first, .name = place.second, .uid = uid}, last); });
  }

  bool report_outdated(const Error& error) {
    const OutageKind kind = kind_of(error);
    if (outage == kind) return !is_dropped;
    outage = kind;
    return !handlers.on_outdated || call_handler([&] { handlers.on_outdated(error); });
  }

  bool recovered() {
    backoff.reset();
    if (!std::exchange(outage, std::nullopt)) return !is_dropped;
    return !handlers.on_current || call_handler([this] { handlers.on_current(); });
  }

  void drop() {
    is_dropped = true;
    call.reset();
    timer.reset();
    list_timer.reset();
  }

  ApiClient& client;
  const std::shared_ptr<ApiSession> session;
  const Selection which;
  const std::string doing;
  const WatchHandlers handlers;
  const WatchOptions options;
  bool streams_list;

  std::map<Place, Known> objects;
  uint64_t list_number = 0;
  std::string version;      ///< from which the watch continues; empty: a list is needed
  bool is_listing = false;  ///< the list comes over the watch
  bool is_synced = false;
  bool is_dropped = false;
  bool has_received_events = false;
  steady_clock::time_point started;
  std::optional<Error> stop_reason;
  std::optional<OutageKind> outage;  ///< that was reported
  Backoff backoff;
  JsonLines lines;
  Call call;
  base::EventLoop::Interest timer;
  base::EventLoop::Interest list_timer;
};

Watch::Watch(ApiClient& client, Selection which, WatchHandlers handlers, WatchOptions options)
    : state_(std::make_shared<State>(client, std::move(which), std::move(handlers), options)) {
  state_->list();
}

Watch::~Watch() {
  state_->drop();
}

bool Watch::is_synced() const {
  return state_->is_synced;
}

size_t Watch::size() const {
  return state_->objects.size();
}

void Watch::relist() {
  state_->timer.reset();
  state_->list();
}

}  // namespace muster::engine::kubernetes
