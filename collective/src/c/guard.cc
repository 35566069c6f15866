#include "c/guard.h"

#include <new>

namespace muster::collective::c {
namespace {

struct LastError {
  int code = MUSTER_OK;
  int rank = Error::kNobody;
  std::string message = {};
  std::string host = {};
  const char* words = "";  // message.c_str(), or a constant if memory was too short for a copy
};

LastError& last_error() {
  thread_local LastError last;
  return last;
}

template <ErrorCode Code, int Number>
constexpr bool kSame = static_cast<int>(Code) == Number;
static_assert(kSame<ErrorCode::kBadArgument, MUSTER_BAD_ARGUMENT> &&
              kSame<ErrorCode::kConfiguration, MUSTER_CONFIGURATION> &&
              kSame<ErrorCode::kAuthentication, MUSTER_AUTHENTICATION> &&
              kSame<ErrorCode::kMismatch, MUSTER_MISMATCH> &&
              kSame<ErrorCode::kPeerLost, MUSTER_PEER_LOST> &&
              kSame<ErrorCode::kTimeout, MUSTER_TIMEOUT> &&
              kSame<ErrorCode::kSystem, MUSTER_SYSTEM>);

template <DataType Type, int Number>
constexpr bool kSameType = static_cast<int>(Type) == Number;
static_assert(
    kSameType<DataType::kFloat32, MUSTER_FLOAT32> &&
    kSameType<DataType::kFloat64, MUSTER_FLOAT64> && kSameType<DataType::kInt32, MUSTER_INT32> &&
    kSameType<DataType::kInt64, MUSTER_INT64> && kSameType<DataType::kFloat16, MUSTER_FLOAT16> &&
    kSameType<DataType::kBFloat16, MUSTER_BFLOAT16> && kSameType<DataType::kInt8, MUSTER_INT8> &&
    kSameType<DataType::kUInt8, MUSTER_UINT8> && kSameType<DataType::kInt16, MUSTER_INT16> &&
    kSameType<DataType::kUInt16, MUSTER_UINT16> && kSameType<DataType::kUInt32, MUSTER_UINT32> &&
    kSameType<DataType::kUInt64, MUSTER_UINT64> && kSameType<DataType::kBool, MUSTER_BOOL>);

template <ReduceOp Op, int Number>
constexpr bool kSameOp = static_cast<int>(Op) == Number;
static_assert(kSameOp<ReduceOp::kSum, MUSTER_SUM> && kSameOp<ReduceOp::kAverage, MUSTER_AVERAGE> &&
              kSameOp<ReduceOp::kMin, MUSTER_MIN> && kSameOp<ReduceOp::kMax, MUSTER_MAX> &&
              kSameOp<ReduceOp::kProduct, MUSTER_PRODUCT> &&
              kSameOp<ReduceOp::kAdasum, MUSTER_ADASUM> &&
              kSameOp<ReduceOp::kBitAnd, MUSTER_BIT_AND> &&
              kSameOp<ReduceOp::kBitOr, MUSTER_BIT_OR> &&
              kSameOp<ReduceOp::kBitXor, MUSTER_BIT_XOR>);

}  // namespace

int fail(const Error& error) noexcept {
  LastError& last = last_error();
  last.code = static_cast<int>(error.code);
  last.rank = error.rank;
  try {
    last.message = error.to_string();
    last.host = error.host;
    last.words = last.message.c_str();
  } catch (const std::bad_alloc&) {
    last.host.clear();
    last.words = "an operation failed, but there is too little memory for its message";
  }
  return last.code;
}

int fail_null(const char* what) noexcept {
  return guarded(
      [what] { return fail({ErrorCode::kBadArgument, "the " + std::string(what) + " is null"}); });
}

int fail_with_current_exception() noexcept {
  LastError& last = last_error();
  last.code = MUSTER_SYSTEM;
  last.rank = Error::kNobody;
  last.host.clear();
  last.words = "an operation failed unexpectedly";
  try {
    throw;
  } catch (const std::bad_alloc&) {
    last.words = "out of memory";
  } catch (const std::exception& error) {
    try {
      last.message = std::string("an operation failed unexpectedly: ") + error.what();
      last.words = last.message.c_str();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the message above stays
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): the message above stays
  }
  return last.code;
}

}  // namespace muster::collective::c

using muster::collective::c::last_error;

const char* muster_version(void) {
  return MUSTER_COLLECTIVE_VERSION;
}

const char* muster_last_error(void) {
  return last_error().words;
}
int muster_last_error_code(void) {
  return last_error().code;
}
int muster_last_error_rank(void) {
  return last_error().rank;
}
const char* muster_last_error_host(void) {
  return last_error().host.c_str();
}

size_t muster_size_of(int type) {
  return muster::collective::size_of(muster::collective::c::type_of(type));
}
