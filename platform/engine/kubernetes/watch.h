// A view of some objects that follows their changes: one list, then a watch, for as long as the
// Watch lives. It survives cut connections, an API server that is away, and an outdated position
// (410 Gone), after which it lists again and reports the difference.
//
// Where the API server can, the list itself comes over the watch (sendInitialEvents; by default in
// Kubernetes 1.32, and from 1.34 on); else it comes in pages. An idle watch keeps its position by bookmarks.
//
// Keeps no objects: of each only the uid and the resourceVersion. On the loop's thread; no handler
// is called from within a call, nor after the Watch was dropped. A handler may drop the Watch. The
// ApiClient must outlive it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"
#include "engine/kubernetes/api_client.h"

namespace muster::engine::kubernetes {

struct ObjectKey {
  std::string space;
  std::string name;
  std::string uid;

  auto operator<=>(const ObjectKey&) const = default;
};

struct WatchHandlers {
  /// The object is new, or differs from the one that was reported last. Each change is reported
  /// once, but several changes may be reported as one.
  std::function<void(const Json& object)> on_object;
  /// The object is gone. `last`: its last state; nullptr if it vanished while the watch was cut.
  /// An object that was replaced by another of the same name is gone first.
  std::function<void(const ObjectKey& key, const Json* last)> on_gone;
  /// Everything that existed has been reported: after the first list, and after each further list.
  std::function<void()> on_synced = {};
  /// The view is outdated: the API server does not answer, or refuses. The watch tries again
  /// by itself. Called once for each outage, again if the reason changes; on_current() ends it.
  std::function<void(const base::Error& error)> on_outdated = {};
  std::function<void()> on_current = {};
};

struct WatchOptions {
  /// The maximum duration of one request. The API server ends it, and the next request continues
  /// the watch.
  std::chrono::seconds length{300};
  /// A watch from which nothing came for this long is taken for dead. Must be longer than the
  /// interval of bookmarks, which is about a minute.
  std::chrono::milliseconds silence{150'000};
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds longest_pause{15'000};
  /// The longest object. etcd's limit is 1.5 MiB; JSON may be longer.
  size_t most_bytes = 16 << 20;
  bool streams_list = true;  ///< false: always list in pages
  /// How long the API server may take for a list over the watch, from one object to the next.
  std::chrono::milliseconds list_silence{20'000};
};

class Watch {
 public:
  Watch(ApiClient& client, Selection which, WatchHandlers handlers, WatchOptions options = {});
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  bool is_synced() const;
  size_t size() const;  ///< the number of objects
  /// Lists again now, as after 410. For callers that suspect a lost event.
  void relist();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muster::engine::kubernetes
