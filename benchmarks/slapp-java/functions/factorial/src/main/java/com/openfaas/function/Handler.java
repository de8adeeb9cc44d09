package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.math.BigInteger;
import java.util.Map;

/** CPU: multiplies 1 to n. */
public class Handler extends AbstractHandler {
    private static final BigInteger PRIME = BigInteger.ONE.shiftLeft(61).subtract(BigInteger.ONE);

    /** Computes `sizes.factorial.n`! and answers its length and its residue by a prime. */
    @Override
    public IResponse Handle(IRequest request) {
        String body = request.getBody();
        Map<String, Object> sizes = Slapp.sizes(body);
        int n = Slapp.size(sizes, "factorial", "n", 9000);
        BigInteger product = factorial(n);
        return Slapp.answer(
            "function", "factorial",
            "n", n,
            "bits", product.bitLength(),
            "residue", product.mod(PRIME),
            "input", Slapp.digest(body),
            "sizes", sizes
        );
    }

    private static BigInteger factorial(int n) {
        BigInteger product = BigInteger.ONE;
        for (int factor = 2; factor <= n; factor++) {
            product = product.multiply(BigInteger.valueOf(factor));
        }
        return product;
    }
}
