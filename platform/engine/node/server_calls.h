// The ways from a muster-node to its server. A muster-node calls its server (ServerCalls), or the
// server connects to it (pod_port.h). Each of the server's names and addresses is tried in
// turn, the one that answered last first. Then both ends prove that they have the key of the
// attempt, and the node sends its Hello.
//
// On the loop's thread, which no class here must outlive; names are resolved on another thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/node/brief.h"
#include "engine/node/connection.h"

namespace muster::engine::node {

/// Finds an address at which a program listens.
class ServerSearch {
 public:
  using Found = std::function<void(base::Result<base::UniqueFd>)>;

  explicit ServerSearch(base::EventLoop& loop) : loop_(loop), looking_up_(loop) {}

  /// Calls `found` with a connected socket. kUnavailable: no address answers; the error lists why.
  /// Dropping the result cancels the search.
  [[nodiscard]] std::shared_ptr<void> find(const CallbackAddress& server, Found found);

  /// The program that answered is not the server: the next search starts with the next address.
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

/// Makes connections to the server: one for orders, and one for each stream.
class ServerWay {
 public:
  using Then = std::function<void(base::Result<std::shared_ptr<NodeConnection>>)>;

  virtual ~ServerWay() = default;
  /// Calls `then` once, later, with a connection on which the hello was sent, or with the reason why
  /// there is none now. Dropping the result cancels the call.
  [[nodiscard]] virtual std::shared_ptr<void> call(Hello hello, Then then) = 0;
};

/// Calls the server.
class ServerCalls : public ServerWay {
 public:
  ServerCalls(base::EventLoop& loop, const NodeBrief& brief)
      : loop_(loop), brief_(brief), search_(loop) {}

  /// From now on the server's address is read from its folder.
  void set_shares_folder() { shares_folder_ = true; }

  /// Answers within some seconds for each address of the server. kUnavailable: the server does not
  /// answer; kRefused: the program that answers has another key.
  [[nodiscard]] std::shared_ptr<void> call(Hello hello, Then then) override;

 private:
  struct Call;
  CallbackAddress server() const;
  void found(const std::shared_ptr<Call>& call, base::UniqueFd socket);
  void failed(const std::shared_ptr<Call>& call, base::Error error);

  base::EventLoop& loop_;
  const NodeBrief& brief_;
  ServerSearch search_;
  bool shares_folder_ = false;
};

/// The connection for orders: seeks the server again and again until it accepts, and whenever the
/// connection is lost.
class OrderLine {
 public:
  struct Handlers {
    std::function<Hello()> hello;
    std::function<void(const NodeOrder&)> on_order;
    std::function<void()> on_lost;
    /// The connection takes more again.
    std::function<void()> on_drain;
    /// There is no connection: whether to call again.
    std::function<bool()> calls_again;
  };

  OrderLine(base::EventLoop& loop, ServerWay& calls, Handlers handlers);

  void call();
  /// The server needs a new connection: the present one, if any, is outdated.
  void call_anew();
  /// Closes the connection, and calls no more.
  void close();
  /// Drops the news unless the server has accepted the connection. False: the connection takes
  /// no more for now (see Handlers::on_drain).
  bool send(const NodeNews& news);

  /// The server has answered this connection's Hello.
  bool is_accepted() const { return is_accepted_; }
  bool was_ever_accepted() const { return was_ever_accepted_; }
  /// Why the latest call failed, or the connection was lost.
  const std::string& last_failure() const { return last_failure_; }
  /// How long there has been no connection.
  std::chrono::steady_clock::duration silence() const;

 private:
  using Steady = std::chrono::steady_clock;

  void called(base::Result<std::shared_ptr<NodeConnection>> line);
  void call_later();
  void lost(const std::string& why);
  void take(const NodeMessage& message);

  base::EventLoop& loop_;
  ServerWay& calls_;
  Handlers handlers_;
  std::shared_ptr<void> calling_;
  std::shared_ptr<NodeConnection> line_;
  bool is_accepted_ = false;
  bool was_ever_accepted_ = false;
  std::string last_failure_;
  Steady::time_point last_contact_ = Steady::now();
  std::chrono::milliseconds pause_;
  base::EventLoop::Interest timer_;
  base::EventLoop::Interest patience_;
};

}  // namespace muster::engine::node
