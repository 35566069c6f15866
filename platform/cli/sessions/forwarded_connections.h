// The connections that programs of this machine have made to forwarded ports, carried to the task
// and back, each on a thread of its own. Where one fails, a line on standard error says why; the
// others go on.
//
// Blocking; I/O. One owner, one thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api/client.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::cli::sessions {

/// Until both sides have said all, or one is gone, or `stop` can be read. Either may close its half
/// and hear on.
///
/// Errors: that the port of the task is not reached.
base::Result<void> carry(api::Client& client, const std::string& job,
                         const api::ForwardRequest& request, const base::UniqueFd& local, int stop);

class ForwardedConnections {
 public:
  /// `program`: who speaks.
  explicit ForwardedConnections(std::string program);
  ForwardedConnections(const ForwardedConnections&) = delete;
  ForwardedConnections& operator=(const ForwardedConnections&) = delete;
  /// Ends all that are left. A server that does not answer does not hold this back: then the
  /// process is ended, as by Ctrl-C.
  ~ForwardedConnections();

  /// Carries `local` to the port by `client`. `name` stands before what is said of it.
  void begin(std::unique_ptr<api::Client> client, const std::string& job,
             const api::ForwardRequest& request, base::UniqueFd local, const std::string& name);

  /// So many that the next is to wait.
  bool is_full();
  /// Readable when one has ended, until take_room().
  int room_fd() const { return room_.get(); }
  void take_room();

 private:
  void end(base::UniqueFd local, const std::string& name, const base::Result<void>& carried);
  void join_ended();

  std::string program_;
  base::UniqueFd stop_;
  base::UniqueFd room_;
  std::mutex mutex_;  ///< of what follows, but for threads_
  std::condition_variable ended_;
  std::set<int> locals_;
  std::set<std::thread::id> over_;  ///< threads that wait to be joined
  std::vector<std::thread> threads_;
};

}  // namespace muster::cli::sessions
