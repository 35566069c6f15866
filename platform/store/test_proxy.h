// A proxy between a store and its PostgreSQL server that cuts the connection at a chosen moment.
//
// For tests. One thread of its own, which ends with it.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace muster::store {

class TestProxy {
 public:
  enum class Cut {
    kNever,
    kBeforeCommit,  ///< the server never gets the COMMIT
    kAfterCommit,   ///< the server commits; its answer is lost
  };

  /// Listens in `folder` as a server would.
  TestProxy(const std::filesystem::path& folder, std::filesystem::path server);
  ~TestProxy();
  TestProxy(const TestProxy&) = delete;
  TestProxy& operator=(const TestProxy&) = delete;

  /// What happens once at the next COMMIT. `then_refuse`: refuses all connections afterwards.
  void cut(Cut cut, bool then_refuse);
  /// Cuts every connection.
  void drop_all();
  /// Accepts or refuses new connections.
  void refuse(bool refuses) { refuses_ = refuses; }

 private:
  void run();
  void accept_one();
  /// False: the pair is to be closed.
  bool pass(int from, int to, bool is_from_client);

  std::filesystem::path server_;
  base::UniqueFd listening_;
  base::UniqueFd stop_;
  base::UniqueFd drop_;
  std::map<int, base::UniqueFd> servers_;  ///< by the client's descriptor
  std::map<int, base::UniqueFd> clients_;
  std::atomic<Cut> cut_{Cut::kNever};
  std::atomic<bool> then_refuse_{false};
  std::atomic<bool> refuses_{false};
  bool awaits_answer_ = false;  ///< waits for the answer to COMMIT, which is to be lost
  std::thread thread_;
};

}  // namespace muster::store
