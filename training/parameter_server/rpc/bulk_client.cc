#include "parameter_server/rpc/bulk_client.h"

#include <utility>

#include "parameter_server/rpc/bulk_messages.h"

namespace muster::parameter_server {

using collective::Result;

std::unique_ptr<BulkClient> BulkClient::connect(const TlsContext& context, const HostAndPort& where,
                                                std::uint64_t session,
                                                std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  Result<Socket> socket = connect_to(where, patience);
  if (!socket) return nullptr;
  std::unique_ptr<BulkClient> client(new BulkClient(context, *std::move(socket)));
  client->wait_with([deadline] { return std::chrono::steady_clock::now() < deadline; }, patience);
  if (!client->stream_.shake_hands() || !client->greet(session)) return nullptr;
  return client;
}

bool BulkClient::greet(std::uint64_t session) {
  v1::BulkHello hello;
  hello.set_session(session);
  if (!send_message(stream_, BulkKind::kHello, hello)) return false;
  const std::optional<v1::BulkAnswer> answer = read_answer(0);
  return answer && answer->code() == 0;
}

std::optional<v1::BulkAnswer> BulkClient::push(const v1::PushHead& head,
                                               std::span<const std::span<const float>> values) {
  std::uint64_t bytes = 0;
  for (const auto piece : values) bytes += piece.size_bytes();
  bool sent = send_message(stream_, BulkKind::kPushRequest, head, bytes);
  for (const auto piece : values) sent = sent && stream_.write(std::as_bytes(piece));
  if (!sent) return std::nullopt;
  return read_answer(0);
}

std::optional<v1::BulkAnswer> BulkClient::pull(const v1::PullRequest& request,
                                               std::span<const std::span<float>> into) {
  std::uint64_t bytes = 0;
  for (const auto piece : into) bytes += piece.size_bytes();
  if (!send_message(stream_, BulkKind::kPullRequest, request)) return std::nullopt;
  std::optional<v1::BulkAnswer> answer = read_answer(bytes);
  if (!answer || answer->code() != 0) return answer;
  for (const auto piece : into) {
    if (!stream_.read(std::as_writable_bytes(piece))) return std::nullopt;
  }
  return answer;
}

// An answer with an error has no values.
std::optional<v1::BulkAnswer> BulkClient::read_answer(std::uint64_t value_bytes) {
  const std::optional<BulkHead> head = read_head(stream_);
  v1::BulkAnswer answer;
  if (!head || head->kind != BulkKind::kAnswer || !read_message(stream_, *head, answer) ||
      head->value_bytes != (answer.code() == 0 ? value_bytes : 0)) {
    return std::nullopt;
  }
  return answer;
}

}  // namespace muster::parameter_server
