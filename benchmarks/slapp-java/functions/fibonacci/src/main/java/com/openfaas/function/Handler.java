package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.util.Map;

/** CPU: the recursive Fibonacci number. */
public class Handler extends AbstractHandler {
    /** Computes the Fibonacci number `sizes.fibonacci.n`. */
    @Override
    public IResponse Handle(IRequest request) {
        String body = request.getBody();
        Map<String, Object> sizes = Slapp.sizes(body);
        int n = Slapp.size(sizes, "fibonacci", "n", 32);
        return Slapp.answer(
            "function", "fibonacci",
            "n", n,
            "value", fibonacci(n),
            "input", Slapp.digest(body),
            "sizes", sizes
        );
    }

    /** The n-th number, in about 1.6**n calls. */
    private static long fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }
}
