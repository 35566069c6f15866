// A client of the Docker Engine API, which Docker and Podman serve. No command line is run or
// parsed. Versions from 1.40 on; the client uses the highest version that both sides support.
//
// On the loop's thread. Every call answers once, later, by its callback, and never after the client
// is destroyed; a callback may destroy it. Streams outlive the client. Calls are bounded in time
// (Patience), except those that wait for events.
//
// Errors contain the endpoint and the engine's own words: kUnavailable (no answer), kNotFound,
// kConflict (a name is taken, or a state forbids the call), kRefused (also: no permission to use
// the socket), kInvalid, kExhausted (the engine's disk is full), kInternal (other failures, and
// malformed answers).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/container/docker_values.h"
#include "engine/container/endpoint.h"

namespace muster::engine {

/// Time limits for an engine.
struct Patience {
  std::chrono::milliseconds connect{5'000};
  std::chrono::milliseconds answer{60'000};
  /// A pull fails after this time without progress.
  std::chrono::milliseconds silence{120'000};
  /// A server that starts waits so long for the first answers of its hosts.
  std::chrono::milliseconds meeting{15'000};
  /// A host that has not answered for this time is gone, with everything that ran there. Restarting
  /// an engine takes less time.
  std::chrono::milliseconds absence{60'000};
  /// A shim may take so long to kill its programs and report the end.
  std::chrono::milliseconds kill{20'000};
};

/// Output and input of a program in a container, or of the container itself. Dropping it closes the
/// connection but does not end the program.
class DockerStream {
 public:
  struct Handlers {
    std::function<void(std::string_view bytes, bool is_error)> on_output;
    std::function<void()> on_end;  ///< called once, after all output
    std::function<void()> on_drain = {};
  };
  virtual ~DockerStream() = default;
  virtual void write(std::string_view bytes) = 0;
  virtual size_t waiting() const = 0;
  virtual void close_input() = 0;
  virtual void pause(bool paused) = 0;
};

class DockerSession;

class DockerClient {
 public:
  template <class Value>
  using Then = std::function<void(Result<Value>)>;
  using Done = std::function<void(Result<void>)>;

  DockerClient(base::EventLoop& loop, Endpoint endpoint, Patience patience = {});
  /// For an endpoint behind a tunnel (SshTunnel): connects to the socket `tunnel` of this machine.
  /// Errors name the endpoint.
  DockerClient(base::EventLoop& loop, Endpoint endpoint, UnixEndpoint tunnel,
               Patience patience = {});
  ~DockerClient();
  DockerClient(const DockerClient&) = delete;
  DockerClient& operator=(const DockerClient&) = delete;

  const Endpoint& endpoint() const;

  /// Asks the engine for its versions. The first of the other calls does this itself.
  void info(Then<DockerInfo> then);

  void inspect_image(const std::string& image, Then<DockerImage> then);
  /// Pulls an image. Dropping the returned handle cancels the pull.
  [[nodiscard]] std::shared_ptr<void> pull(const std::string& image, const RegistryAccess& access,
                                           std::function<void(const PullProgress&)> progress,
                                           Done done);

  void create_network(const std::string& name, const std::map<std::string, std::string>& labels,
                      Then<std::string> then);
  /// Succeeds if the network does not exist. kConflict: a container uses it.
  void remove_network(const std::string& name, Done done);
  /// Names and labels of the networks with all of these labels ("name" or "name=value").
  void networks(const std::vector<std::string>& labels,
                Then<std::vector<std::pair<std::string, std::map<std::string, std::string>>>> then);

  /// An existing volume is kept as it is.
  void create_volume(const std::string& name, const std::map<std::string, std::string>& labels,
                     Done done);
  /// Succeeds if the volume does not exist. kConflict: a container uses it.
  void remove_volume(const std::string& name, Done done);
  void volumes(const std::vector<std::string>& labels,
               Then<std::vector<std::pair<std::string, std::map<std::string, std::string>>>> then);

  /// Creates a container and returns its id.
  void create(const ContainerConfig& config, Then<std::string> then);
  /// Succeeds if the container is running already.
  void start(const std::string& id, Done done);
  void inspect(const std::string& id, Then<ContainerState> then);
  /// The containers with all of these labels, running or not. Only inspect() returns how a
  /// container ended.
  void list(const std::vector<std::string>& labels, Then<std::vector<ContainerState>> then);
  /// Sends a signal, such as "TERM", to process 1. kConflict: the container is not running.
  void kill(const std::string& id, const std::string& signal, Done done);
  /// Kills and removes a container with its anonymous volumes. Succeeds if it does not exist.
  void remove(const std::string& id, Done done);

  /// Unpacks a tar below `folder` of a container, which may be stopped.
  void put_archive(const std::string& id, const std::string& folder, std::string tar, Done done);
  /// The same for a large tar: `next` returns the next piece, and an empty piece at the end.
  void put_archive(const std::string& id, const std::string& folder,
                   std::function<Result<std::string>()> next, Done done);
  /// The tar of a path, in pieces. `then` is called at the end.
  [[nodiscard]] std::shared_ptr<void> get_archive(const std::string& id, const std::string& path,
                                                  std::function<void(std::string_view)> on_piece,
                                                  Done then);
  void stat(const std::string& id, const std::string& path, Then<PathFacts> then);

  /// The output of process 1 from now on, and its input if it has one. Attach before start() to get
  /// all output. kConflict: the container has ended.
  void attach(const std::string& id, bool terminal, DockerStream::Handlers handlers,
              Then<std::unique_ptr<DockerStream>> then);

  void create_exec(const std::string& id, const DockerExec& exec, Then<std::string> then);
  void start_exec(const std::string& exec_id, bool terminal, DockerStream::Handlers handlers,
                  Then<std::unique_ptr<DockerStream>> then);
  void resize_exec(const std::string& exec_id, int rows, int columns, Done done);
  void inspect_exec(const std::string& exec_id, Then<DockerExit> then);

  /// Events of containers with these labels from now on, until the returned handle is dropped.
  /// Earlier events of the current second may be included. `open` is called once, when the stream
  /// begins; `broken` once, if the stream fails or ends.
  [[nodiscard]] std::shared_ptr<void> events(const std::vector<std::string>& labels,
                                             std::function<void(const DockerEvent&)> on_event,
                                             std::function<void(base::Error)> broken,
                                             std::function<void()> open = {});

 private:
  std::shared_ptr<DockerSession> session_;
};

}  // namespace muster::engine
