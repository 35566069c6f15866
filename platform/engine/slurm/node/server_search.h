// Finds the server: each of its names and addresses is tried in turn until one answers, first the
// one that did last.
//
// On the loop's thread, which it must not outlive; names are looked up on another.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/slurm/node_brief.h"

namespace muster::engine::slurm {

class ServerSearch {
 public:
  using Found = std::function<void(base::Result<base::UniqueFd>)>;

  explicit ServerSearch(base::EventLoop& loop) : loop_(loop), looking_up_(loop) {}

  /// A connected socket. kUnavailable: none of them answers, and what each says. Drop what is
  /// returned to hear no more.
  [[nodiscard]] std::shared_ptr<void> find(const CallbackAddress& server, Found found);

  /// What answered was another program: the next search begins behind it.
  void distrust() { is_distrusted_ = true; }

 private:
  struct Search;
  void look_up(const std::shared_ptr<Search>& search);
  void connect(const std::shared_ptr<Search>& search);
  void connected(const std::shared_ptr<Search>& search, int error);
  void next(const std::shared_ptr<Search>& search, const std::string& why);

  base::EventLoop& loop_;
  base::Background looking_up_;
  std::string answered_last_;
  bool is_distrusted_ = false;
};

}  // namespace muster::engine::slurm
