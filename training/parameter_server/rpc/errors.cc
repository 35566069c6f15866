#include "parameter_server/rpc/errors.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <string_view>
#include <utility>

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;

struct Pair {
  ErrorCode ours;
  grpc::StatusCode grpcs;
};
// What servers answer with. Other codes of gRPC's come from the connection.
constexpr std::array<Pair, 6> kCodes = {{
    {ErrorCode::kBadArgument, grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorCode::kConfiguration, grpc::StatusCode::OUT_OF_RANGE},
    {ErrorCode::kAuthentication, grpc::StatusCode::UNAUTHENTICATED},
    {ErrorCode::kMismatch, grpc::StatusCode::FAILED_PRECONDITION},
    {ErrorCode::kPeerLost, grpc::StatusCode::ABORTED},
    {ErrorCode::kSystem, grpc::StatusCode::RESOURCE_EXHAUSTED},
}};

constexpr std::string_view kCut = " ...";

}  // namespace

grpc::Status to_grpc(const Error& error) {
  const auto* const pair = std::find_if(kCodes.begin(), kCodes.end(),
                                        [&](const Pair& one) { return one.ours == error.code; });
  std::string text = error.to_string();
  if (text.size() > kLongestMessage)
    text = text.substr(0, kLongestMessage - kCut.size()).append(kCut);
  return {pair == kCodes.end() ? grpc::StatusCode::INTERNAL : pair->grpcs, text};
}

grpc::Status with_memory(const std::function<grpc::Status()>& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return to_grpc({ErrorCode::kSystem, "the parameter server has no memory left",
                    "run the job with more parameter servers, or give them more memory"});
  }
}

std::string Whom::name() const {
  return "parameter server " + std::to_string(server) + " (" + address + ")";
}

Error from_grpc(const grpc::Status& status, const Whom& whom) {
  Error error = {ErrorCode::kPeerLost, "", "", whom.server, whom.address};
  const auto* const pair = std::find_if(kCodes.begin(), kCodes.end(), [&](const Pair& one) {
    return one.grpcs == status.error_code();
  });
  if (pair != kCodes.end()) {
    error.code = pair->ours;
    error.message = whom.name() + ": " + status.error_message();
  } else if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    error.code = ErrorCode::kTimeout;
    error.message = whom.name() + " did not answer in time";
    error.advice = "where a slow worker is waited for, a longer timeout helps";
  } else {
    error.message = whom.name() + " was lost: " + status.error_message();
    error.advice = "the end of its log says why";
  }
  return error;
}

bool is_stranger(const grpc::Status& status) {
  // gRPC has no code for it. OpenSSL's reason stands in the text, in capitals in some versions.
  std::string text = status.error_message();
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) {
    return letter == '_' ? ' ' : static_cast<char>(std::tolower(letter));
  });
  return text.find("certificate verify failed") != std::string::npos;
}

}  // namespace muster::parameter_server
