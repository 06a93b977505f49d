"""Operations: what people do to an instance or to the whole fleet, each in one commit."""
