// A client of the Docker Engine API, as Docker and Podman serve it: no command line is run or
// parsed. Versions from 1.40 on; the highest that both sides know is spoken.
//
// On the loop's thread. Every call answers once, later, by its callback; never after the client is
// gone; a callback may end it. Streams live on without it. Each is bounded in time (Patience), but
// for those that wait for something to happen.
//
// Errors, with the endpoint and the engine's own words: kUnavailable (nobody answers there, or it
// hangs), kNotFound, kConflict (a name that is taken, a state that forbids it), kRefused (also:
// this user may not use the socket), kInvalid, kExhausted (its disk is full), kInternal (other
// failures, and what is no answer).
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

/// How long is waited for an engine.
struct Patience {
  std::chrono::milliseconds connect{5'000};
  std::chrono::milliseconds answer{60'000};
  /// A pull that says nothing for so long has failed.
  std::chrono::milliseconds silence{120'000};
  /// A host that has not answered for so long is gone, and with it what ran there. An engine that
  /// is restarted is back sooner.
  std::chrono::milliseconds absence{60'000};
};

/// Output and input of a program in a container, or of the container itself.
///
/// Dropping it closes the connection; what the program then does is its own matter.
class DockerStream {
 public:
  struct Handlers {
    std::function<void(std::string_view bytes, bool is_error)> on_output;
    std::function<void()> on_end;  ///< once, after all output
    std::function<void()> on_drain = {};
  };
  virtual ~DockerStream() = default;
  virtual void write(std::string_view bytes) = 0;
  virtual size_t waiting() const = 0;
  virtual void close_input() = 0;
  virtual void pause(bool paused) = 0;
};

class DockerClient {
 public:
  template <class Value>
  using Then = std::function<void(Result<Value>)>;
  using Done = std::function<void(Result<void>)>;

  DockerClient(base::EventLoop& loop, Endpoint endpoint, Patience patience = {});
  /// An endpoint that is reached by way of a socket of this machine (SshTunnel): errors name the
  /// endpoint.
  DockerClient(base::EventLoop& loop, Endpoint endpoint, UnixEndpoint tunnel,
               Patience patience = {});
  ~DockerClient();
  DockerClient(const DockerClient&) = delete;
  DockerClient& operator=(const DockerClient&) = delete;

  const Endpoint& endpoint() const;

  /// Asks for the versions; every other call does so first where it was not done.
  void info(Then<DockerInfo> then);

  void inspect_image(const std::string& image, Then<DockerImage> then);
  /// Fetches an image. Dropping what is returned ends it.
  [[nodiscard]] std::shared_ptr<void> pull(const std::string& image, const RegistryAccess& access,
                                           std::function<void(const PullProgress&)> progress,
                                           Done done);

  void create_network(const std::string& name, const std::map<std::string, std::string>& labels,
                      Then<std::string> then);
  /// kNotFound is no error. kConflict: a container is on it.
  void remove_network(const std::string& name, Done done);
  /// The names of those with all of these labels ("name" or "name=value").
  void networks(const std::vector<std::string>& labels,
                Then<std::vector<std::pair<std::string, std::map<std::string, std::string>>>> then);

  /// One that is there already stays as it is.
  void create_volume(const std::string& name, const std::map<std::string, std::string>& labels,
                     Done done);
  /// kNotFound is no error. kConflict: a container has it.
  void remove_volume(const std::string& name, Done done);
  void volumes(const std::vector<std::string>& labels,
               Then<std::vector<std::pair<std::string, std::map<std::string, std::string>>>> then);

  /// Its id.
  void create(const ContainerConfig& config, Then<std::string> then);
  /// One that runs already is started.
  void start(const std::string& id, Done done);
  void inspect(const std::string& id, Then<ContainerState> then);
  /// Those with all of these labels, whether they run or not; how one ended inspect() says alone.
  void list(const std::vector<std::string>& labels, Then<std::vector<ContainerState>> then);
  /// A signal to its process 1: "TERM". kConflict: it does not run.
  void kill(const std::string& id, const std::string& signal, Done done);
  /// By force, with its anonymous volumes; done when it is gone. kNotFound is no error.
  void remove(const std::string& id, Done done);

  /// Unpacks a tar below `folder` of a container, which need not run.
  void put_archive(const std::string& id, const std::string& folder, std::string tar, Done done);
  /// The same of a large one: `next` gives its next piece, an empty one at its end.
  void put_archive(const std::string& id, const std::string& folder,
                   std::function<Result<std::string>()> next, Done done);
  /// The tar of a path, in pieces; `then` when all has come.
  [[nodiscard]] std::shared_ptr<void> get_archive(const std::string& id, const std::string& path,
                                                  std::function<void(std::string_view)> on_piece,
                                                  Done then);
  void stat(const std::string& id, const std::string& path, Then<PathFacts> then);

  /// What its process 1 prints from now on, and its input where it has one. Before it is started:
  /// nothing is missed. kConflict: it has ended.
  void attach(const std::string& id, bool terminal, DockerStream::Handlers handlers,
              Then<std::unique_ptr<DockerStream>> then);

  void create_exec(const std::string& id, const DockerExec& exec, Then<std::string> then);
  void start_exec(const std::string& exec_id, bool terminal, DockerStream::Handlers handlers,
                  Then<std::unique_ptr<DockerStream>> then);
  void resize_exec(const std::string& exec_id, int rows, int columns, Done done);
  void inspect_exec(const std::string& exec_id, Then<DockerExit> then);

  /// Events of containers with these labels from now on, until the interest is dropped; of this
  /// second also what was before. `open` once, when the engine tells them. `broken` once when the
  /// stream has ended by itself, or could not be had.
  [[nodiscard]] std::shared_ptr<void> events(const std::vector<std::string>& labels,
                                             std::function<void(const DockerEvent&)> on_event,
                                             std::function<void(base::Error)> broken,
                                             std::function<void()> open = {});

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::engine
