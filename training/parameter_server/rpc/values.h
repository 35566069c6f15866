// Values in a gRPC stream, sent and received as chunks. Both ends use these functions.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "parameter_server/chunk.h"

namespace muster::parameter_server {

/// Sends values in pieces of `counts` elements, each at most kChunkBytes long, with as many pieces
/// in a chunk as fit. `piece(i)` is called once for each piece, in order, shortly before it is
/// sent. Returns false if `write` does: the stream has ended.
bool send_values(std::span<const std::size_t> counts,
                 const std::function<grpc::Slice(std::size_t)>& piece,
                 const std::function<bool(const grpc::ByteBuffer&)>& write);

/// Writes the values of a chunk to `into`. False if the message is not a chunk, or if it has more
/// values than there is room for.
bool take_chunk(grpc::ByteBuffer& chunk, Filler& into);

/// A protobuf message as a buffer for a raw stream.
template <typename Message>
grpc::ByteBuffer raw(const Message& message) {
  grpc::ByteBuffer buffer;
  bool own = false;
  grpc::SerializationTraits<Message>::Serialize(message, &buffer, &own);
  return buffer;
}

/// False if the buffer does not contain such a message.
template <typename Message>
bool parse(grpc::ByteBuffer& buffer, Message& message) {
  return grpc::SerializationTraits<Message>::Deserialize(&buffer, &message).ok();
}

}  // namespace muster::parameter_server
