// HTTP/2 header lists (RFC 9113 section 8) to heads and back. nghttp2 has checked case, order, characters and
// the length of bodies; this adds what a reader of HTTP/1.1 behind us would need to agree.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "http/message.h"

namespace firestop::http {

// A list as it arrives; bounded, since one small frame can stand for many long fields (RFC 7541 section 7).
class H2FieldList {
 public:
  static constexpr size_t kMostFields = 256;
  static constexpr size_t kMostBytes = 64u << 10;  // names and values, 32 each more (RFC 9113 section 6.5.2)

  bool add(std::string_view name, std::string_view value);  // false: over a bound, and nothing was added
  const Headers& fields() const { return fields_; }
  void clear();

 private:
  Headers fields_;
  size_t bytes_ = 0;
};

// `ended`: no body and no trailers follow. Errors: "http.bad_request", "http.bad_response".
Result<RequestHead> request_from_h2(const H2FieldList& list, bool ended);
Result<ResponseHead> response_from_h2(const H2FieldList& list, bool ended);
// Trailers without what must not be there (RFC 9110 section 6.5.1).
Headers trailers_from_h2(const H2FieldList& list);

Headers to_h2(const RequestHead& head);  // the names in lower case, pseudo-headers first
Headers to_h2(const ResponseHead& head);
Headers trailers_to_h2(const Headers& trailers);

}  // namespace firestop::http
