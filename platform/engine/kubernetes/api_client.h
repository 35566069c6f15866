// A client of a Kubernetes API server: objects as JSON, by group, version and resource.
//
// Requests are limited in number at once, so that a large job does not use up the API server's
// share for this account (API priority and fairness); watches and streams are not counted. A request
// that the API server rejects because it is busy (429, 503) is repeated when its Retry-After is
// over. A lost request is repeated with growing pauses if that is safe: always for get, list,
// apply and delete; never for create, evict and bind, whose error is then kTimeout, because the
// request may have been carried out.
//
// On the loop's thread. Every call answers once, later, by its callback; never after its handle was
// dropped or the client was destroyed. A callback may destroy the client.
//
// Errors contain the API server's address and its own words (api_error.h): refusal_of() returns
// them as values. Others: kUnavailable (not reached within `patience`), kTimeout (the answer to a
// request was lost), kRefused (the certificate is not trusted), kInternal (malformed answer).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/kubernetes/access.h"
#include "engine/kubernetes/api_error.h"
#include "http/async_client.h"

namespace muster::engine::kubernetes {

using Json = nlohmann::json;

/// A kind of object: group, version and plural name. The texts must live forever, as literals do.
struct Resource {
  std::string_view group = {};  ///< "batch"; empty: the core group
  std::string_view version = "v1";
  std::string_view plural;  ///< "pods"
  bool is_namespaced = true;

  bool operator==(const Resource&) const = default;
};

inline constexpr Resource kPods{.plural = "pods"};
inline constexpr Resource kServices{.plural = "services"};
inline constexpr Resource kSecrets{.plural = "secrets"};
inline constexpr Resource kConfigMaps{.plural = "configmaps"};
inline constexpr Resource kEvents{.plural = "events"};
inline constexpr Resource kPersistentVolumeClaims{.plural = "persistentvolumeclaims"};
inline constexpr Resource kNodes{.plural = "nodes", .is_namespaced = false};
inline constexpr Resource kNamespaces{.plural = "namespaces", .is_namespaced = false};
inline constexpr Resource kPriorityClasses{
    .group = "scheduling.k8s.io", .plural = "priorityclasses", .is_namespaced = false};
inline constexpr Resource kJobs{.group = "batch", .plural = "jobs"};
inline constexpr Resource kNetworkPolicies{.group = "networking.k8s.io",
                                           .plural = "networkpolicies"};

/// Of Kueue.
inline constexpr Resource kWorkloads{
    .group = "kueue.x-k8s.io", .version = "v1beta1", .plural = "workloads"};

/// An object. `space`: its namespace; empty for objects outside of namespaces.
struct ObjectName {
  Resource resource;
  std::string space;
  std::string name;
};

/// The handle of a pending call. Dropping it cancels the call; a request that was sent already may
/// still be carried out.
using Call = std::shared_ptr<void>;

/// Which objects of a resource. An empty `space` means all namespaces.
struct Selection {
  Resource resource;
  std::string space;
  std::string labels;  ///< "muster.dev/job=x,muster.dev/task"
  std::string fields;  ///< "involvedObject.uid=..."
};

struct DeleteOptions {
  std::string uid;               ///< delete only the object with this uid; empty: any
  std::string resource_version;  ///< and in this version; empty: any
  std::optional<std::chrono::seconds> grace;
  /// What happens to the objects that this one owns; empty: the resource's default.
  std::string propagation;  ///< "Foreground", "Background", "Orphan"
};

struct ApplyOptions {
  bool force = true;             ///< take over fields that another manager owns
  std::string subresource = {};  ///< "status"
};

enum class PatchType { kMerge, kJson, kStrategicMerge };

struct LogOptions {
  std::string container;
  bool follow = false;
  bool previous = false;  ///< of the container's previous run
  std::optional<int64_t> tail_lines;
  std::optional<int64_t> limit_bytes;
  bool timestamps = false;
};

/// A question about a right (SelfSubjectAccessReview).
struct AccessQuestion {
  std::string verb;  ///< "create"
  Resource resource;
  std::string subresource = {};
  std::string space = {};
  std::string name = {};
};

struct AccessAnswer {
  bool allowed = false;
  std::string reason;  ///< the authorizer's words; often empty
};

struct ServerVersion {
  int major = 0;
  int minor = 0;
  std::string git_version;  ///< "v1.37.2"
  std::string platform;     ///< "linux/amd64"
};

struct ApiOptions {
  std::string version;  ///< of Muster, for the User-Agent
  size_t at_once = 24;  ///< requests that wait for an answer; further requests are queued
  std::chrono::milliseconds connect{5'000};
  std::chrono::milliseconds answer{60'000};    ///< the API server's own limit is 60 s
  std::chrono::milliseconds patience{30'000};  ///< for repetitions, from the first failure on
  std::chrono::milliseconds first_pause{200};  ///< doubles each time, with jitter
  std::chrono::milliseconds longest_pause{10'000};
  int page = 500;  ///< objects a page of a list
  std::string field_manager = "muster";
};

/// Calls by verb and resource ("create pods", "watch nodes"), repetitions included.
using CallCounts = std::map<std::pair<std::string, std::string>, uint64_t>;

class ApiSession;

class ApiClient {
 public:
  template <class Value>
  using Then = std::function<void(base::Result<Value>)>;
  using Done = std::function<void(base::Result<void>)>;

  ApiClient(base::EventLoop& loop, std::unique_ptr<Access> access, ApiOptions options = {});
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  const AccessFacts& facts() const;
  const ApiOptions& options() const;
  const CallCounts& counts() const;
  /// Waits in the queue, and waits for an answer: for `explain` and tests.
  size_t queued() const;
  size_t in_flight() const;

  // --- objects

  [[nodiscard]] Call get(ObjectName name, Then<Json> then);
  /// All objects, fetched page by page, at once. A list whose continuation has expired (410) begins
  /// again. `then` gets the resourceVersion from which a watch can continue.
  struct Listed {
    std::vector<Json> objects;
    std::string resource_version;
  };
  /// `items`: an array of objects; `is_first`: what came before is void, because the list begins
  /// (again).
  using OnPage = std::function<void(Json items, bool is_first)>;
  [[nodiscard]] Call list(Selection which, Then<Listed> then);
  /// The same, page by page. `then` gets the resourceVersion.
  [[nodiscard]] Call list_pages(Selection which, OnPage on_page, Then<std::string> then);
  /// `object` is complete, with apiVersion, kind and metadata. Answers with the created object.
  [[nodiscard]] Call create(Resource resource, std::string space, const Json& object,
                            Then<Json> then);
  /// Server-side apply: creates the object or changes the fields that `object` contains. Answers
  /// with the whole object. kConflict without `force`: another manager owns a field.
  [[nodiscard]] Call apply(ObjectName name, const Json& object, const ApplyOptions& options,
                           Then<Json> then);
  /// A merge patch is repeated if its answer is lost; a JSON patch is not.
  [[nodiscard]] Call patch(ObjectName name, PatchType type, const Json& changes, Then<Json> then,
                           std::string subresource = {});
  /// Succeeds if the object does not exist. The object may exist for a while after that (grace
  /// period, finalizers). kConflict: it exists with another uid.
  [[nodiscard]] Call remove(ObjectName name, const DeleteOptions& options, Done done);
  /// Deletes all selected objects in one request (deletecollection).
  [[nodiscard]] Call remove_all(Selection which, const DeleteOptions& options, Done done);

  // --- pods

  /// Assigns a pod to a node (the subresource binding).
  [[nodiscard]] Call bind(const std::string& space, const std::string& pod, const std::string& uid,
                          const std::string& node, Done done);
  /// Evicts a pod. kExhausted: a PodDisruptionBudget forbids it now. Repeated if its answer is lost
  /// and `options` have a uid.
  [[nodiscard]] Call evict(const std::string& space, const std::string& pod,
                           const DeleteOptions& options, Done done);
  /// The log of a container, piece by piece; `done` at its end. `on_piece` returns false to end it.
  [[nodiscard]] Call logs(const std::string& space, const std::string& pod,
                          const LogOptions& options, http::OnPiece on_piece, Done done);

  // --- the server

  [[nodiscard]] Call version(Then<ServerVersion> then);
  [[nodiscard]] Call may_i(const AccessQuestion& question, Then<AccessAnswer> then);
  /// Any path below the API server: "/readyz", "/apis". Answers with the body.
  [[nodiscard]] Call get_path(std::string path, Then<std::string> then);

  /// The requests below this class (api_session.h), for watches and streams.
  const std::shared_ptr<ApiSession>& session() const { return session_; }

 private:
  std::shared_ptr<ApiSession> session_;
};

}  // namespace muster::engine::kubernetes
